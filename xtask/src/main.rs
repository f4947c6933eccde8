//! The project's own commands: set-up, build, test, lab, bench.

fn main() {}
