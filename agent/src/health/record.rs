//! From the bytes of a health record to an event, with checks.

use std::time::SystemTime;

use agent_common::health::{MESSAGE, NAME, PART, VALUES};

use super::names::Row;
use super::{HealthEvent, Place};
use crate::host::rdma::RdmaFacts;
use crate::probes::Hook;
use crate::verbs::record::{DecodeError, longs, take, text, words};

/// Reads a record behind its kind. `wall` turns the kernel's monotonic time into that of the wall.
///
/// # Errors
///
/// If the bytes are no such record.
pub(crate) fn decode(
    mut b: &[u8],
    host: &RdmaFacts,
    wall: impl FnOnce(u64) -> SystemTime,
) -> Result<HealthEvent, DecodeError> {
    let [hook] = words(&mut b)?;
    let [time_ns] = longs(&mut b)?;
    let values: [u64; VALUES] = longs(&mut b)?;
    let device = text(take(&mut b, NAME)?);
    let part = text(take(&mut b, PART)?);
    let message = text(take(&mut b, MESSAGE)?);
    let hook = u16::try_from(hook).ok().and_then(Hook::by_number).ok_or(DecodeError::Field("hook"))?;
    let row = Row::find(hook.name).ok_or(DecodeError::Field("hook"))?;
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(HealthEvent {
        time: wall(time_ns),
        event: row.hook.to_owned(),
        place: Place::find(row.about, &device, host),
        part: known(part),
        message: known(message),
        values: row
            .numbers
            .iter()
            .zip(values)
            .map(|(number, raw)| (number.name.to_owned(), number.read(raw)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(hook: &str, device: &str, part: &str, message: &str) -> Vec<u8> {
        let number = Hook::all().find(|(_, row)| row.name == hook).map_or(0, |(number, _)| number);
        let mut bytes = u32::from(number).to_ne_bytes().to_vec();
        for value in [7u64, 0xffff_fff4, 1 << 40, 0x1_0002] {
            bytes.extend(value.to_ne_bytes());
        }
        for (text, length) in [(device, NAME), (part, PART), (message, MESSAGE)] {
            bytes.extend(text.bytes().chain(std::iter::repeat(0)).take(length));
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<HealthEvent, DecodeError> {
        decode(bytes, &RdmaFacts::default(), |ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns))
    }

    #[test]
    fn what_the_kernel_wrote_is_read() {
        let event = read(&record("devlink_hwerr", "0000:3b:00.0", "", "bad\nparam")).expect("a record");
        assert_eq!(event.time, SystemTime::UNIX_EPOCH + Duration::from_nanos(7));
        assert_eq!((&*event.event, event.place.pci.as_deref()), ("devlink_hwerr", Some("0000:3b:00.0")));
        assert_eq!(event.values, [("error".to_owned(), -12)]);
        assert_eq!((event.part, event.message.as_deref()), (None, Some("bad\u{fffd}param")));
        let event = read(&record("devlink_health", "0000:3b:00.0", "fw_fatal", "")).expect("a record");
        assert_eq!((event.part.as_deref(), event.message, event.values), (Some("fw_fatal"), None, Vec::new()));
    }

    #[test]
    fn whatever_is_cut_short_or_of_another_hook_is_an_error() {
        let whole = record("tx_timeout", "eth0", "", "");
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
        assert!(read(&record("uverbs_ioctl", "eth0", "", "")).is_err());
        assert!(read(&[&u32::MAX.to_ne_bytes(), &whole[4..]].concat()).is_err());
    }
}
