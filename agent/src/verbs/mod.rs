//! The verbs tracer on the user side: names, requests, records.

pub(crate) mod asynchronous;
pub(crate) mod cause;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod request;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod text;
pub(crate) mod vectors;
