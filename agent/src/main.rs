//! The `fabricscope` binary: parse, dispatch, exit status.

fn main() {}
