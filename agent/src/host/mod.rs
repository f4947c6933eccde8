//! The host this runs on.

pub(crate) mod errno;
