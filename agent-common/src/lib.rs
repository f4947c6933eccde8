//! Types and tables that the kernel side writes and the user side reads.
#![no_std]

pub mod verb;
