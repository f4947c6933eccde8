//! placeholder until merged
