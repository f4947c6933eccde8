//! What the end-to-end tests share: running programs and machines, the known calls, and the comparison.
//!
//! The crate drives the binaries as processes and links none of their code. `cargo test -p tests` runs the unit tests
//! of the pure parts; `--features host --test host` starts the release binary on this host, and
//! `--features lab --test lab` boots one machine for each kernel and scenario.

pub mod command;
mod debian;
pub mod duckdb;
pub mod event;
pub mod facts;
pub mod fixture;
pub mod iperf3;
pub mod lab;
pub mod metrics;
pub mod modules;
pub mod network;
pub mod nic;
pub mod node_exporter;
pub mod permits;
pub mod promtool;
pub mod scenario;
pub mod strace;
pub mod truth;
pub mod workload;
