//! The verbs tracer on the user side: names, requests, records.

pub(crate) mod names;
pub(crate) mod request;
