//! Types and tables that the kernel side writes and the user side reads.
//!
//! This crate depends on nothing and knows neither aya nor the kernel side's maps. Everything here has a fixed layout
//! of fixed-width integers and byte arrays, without padding, so that user space can decode a record from bytes with
//! checks and never has to trust them as Rust values.
#![no_std]

pub mod bucket;
pub mod counter;
pub mod health;
pub mod histogram;
pub mod hook;
pub mod place;
pub mod record;
pub mod retransmission;
pub mod settings;
pub mod tick;
pub mod verb;
