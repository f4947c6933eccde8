//! `fabricscope.v1`: the messages and services by which the parts of fabricscope talk.
//!
//! The `.proto` files say what each message and field means; the code under `generated/` is made from them by the
//! test `generated`, which fails when it is out of date. This crate must not know what the agent does with a message:
//! conversions to domain types stand where the domain types do.

/// Version 1. Fields and values are only ever added.
pub mod v1 {
    #![expect(
        clippy::all,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]

    include!("generated/fabricscope.v1.rs");

    /// The `.proto` files in binary form, for server reflection.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/fabricscope.v1.bin");
}
