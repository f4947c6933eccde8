//! What a failed call asked for: from the bytes that the kernel side copied to domain types.
//!
//! Only stable user-space structures are read, so it works without any kernel type information. Whatever
//! is cut short, refused or unknown is absent from the answer; no input is an error.

mod bytes;
mod cm;
mod legacy;
mod native;
#[cfg(test)]
mod tests;
pub(crate) mod types;

use agent_common::verb::{ATTR_CORE_IN, ATTR_INLINE_LEN, VerbKey, interface};

use self::bytes::{Attrs, Bytes};
pub(crate) use self::types::Request;

/// What was copied of a call; every part may be empty or cut short.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawRequest<'a> {
    /// The call's key.
    pub(crate) key: VerbKey,
    /// `struct ib_uverbs_attr` after the ioctl header, 16 bytes each, as the user passed them.
    pub(crate) attrs: &'a [u8],
    /// The structure of a write command: what `UVERBS_ATTR_CORE_IN` points to, or the written buffer
    /// after its header (8 bytes; 24 for extended commands). A structure of at most 8 bytes stands in
    /// the attribute itself and is taken from `attrs`.
    pub(crate) core_in: &'a [u8],
    /// What the attribute of [`agent_common::verb::payload_of`] points to.
    pub(crate) payload: &'a [u8],
}

/// Reads what the call asked for.
#[must_use]
pub(crate) fn decode(raw: &RawRequest<'_>) -> Request {
    let mut request = Request::default();
    let attrs = Attrs::new(raw.attrs);
    // Only native methods belong to a driver.
    if raw.key.driver() != 0 && raw.key.interface() != interface::IOCTL {
        return request;
    }
    match raw.key.interface() {
        interface::IOCTL => native::decode(raw, &attrs, &mut request),
        interface::LEGACY_IOCTL => {
            let inline;
            let core_in = match attrs.find(ATTR_CORE_IN) {
                Some(attr) if attr.len <= ATTR_INLINE_LEN => {
                    inline = attr.data;
                    inline.get(..usize::from(attr.len)).unwrap_or_default()
                }
                Some(attr) => raw.core_in.get(..usize::from(attr.len)).unwrap_or(raw.core_in),
                None => raw.core_in,
            };
            legacy::decode(raw.key, Bytes(core_in), &mut request);
        }
        interface::LEGACY_WRITE => legacy::decode(raw.key, Bytes(raw.core_in), &mut request),
        interface::UCMA => cm::decode(raw.key, Bytes(raw.core_in), &mut request),
        _ => {}
    }
    request.without_empty_parts()
}
