//! The `fabricscope` binary: parse, dispatch, exit status.

#[cfg_attr(not(test), expect(dead_code, reason = "nothing decodes records yet"))]
mod host;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing decodes records yet"))]
mod verbs;

fn main() {}
