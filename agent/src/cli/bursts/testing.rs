//! Series for tests, written as text.

use analysis::series::{BitsPerSecond, DurationNs, Fields, Measured, Sample, Series, Sketch, Span, Traffic, UtcNs};

/// When every series starts: 2023-11-14T22:13:20 UTC.
pub(super) const START: i64 = 1_700_000_000_000_000_000;

/// 1 ms samples of a device of 8 Gbit/s: of both directions a character each. A digit is tenths of line rate, `#` all
/// of it, `.` nothing, `?` a time that was not measured (in `rx`). A tenth of what comes is marked, a tenth of what
/// goes was sent before.
pub(super) fn series(host: &str, rx: &str, tx: &str) -> Series {
    let interval = DurationNs(1_000_000);
    let measured = Measured { packets: true, ce: true, flows: true, ..Measured::BYTES };
    let fields = Fields { rx: measured, tx: Measured { retransmits: true, ..measured } };
    let mut series = Series {
        host: host.to_owned(),
        boot_id: String::new(),
        netdev: "eth0".to_owned(),
        interval,
        line_rate: Some(BitsPerSecond(8_000_000_000)),
        clock_error: Some(DurationNs(200_000)),
        fields,
        ..Series::default()
    };
    let bytes = |character: char| match character {
        '#' => 1_000_000,
        digit => u64::from(digit.to_digit(10).unwrap_or_default()) * 100_000,
    };
    for (number, (rx, tx)) in (0..).zip(rx.chars().zip(tx.chars())) {
        let start = UtcNs(START + number * 1_000_000);
        let end = start.after(interval);
        if rx == '?' {
            series.lost += 1;
            continue;
        }
        match series.covered.last_mut().filter(|span| span.end == start) {
            Some(span) => span.end = end,
            None => series.covered.push(Span { start, end }),
        }
        let traffic = |bytes: u64, ce_bytes, retransmit_bytes| Traffic {
            bytes,
            packets: bytes / 1000,
            ce_bytes,
            retransmit_bytes,
            flows: Sketch(1 << (number % 128)),
            ..Traffic::default()
        };
        let (rx, tx) = (bytes(rx), bytes(tx));
        if rx + tx > 0 {
            let (rx, tx) = (traffic(rx, rx / 10, 0), traffic(tx, 0, tx / 10));
            series.samples.push(Sample { start, length: interval, rx, tx });
        }
    }
    series
}

/// Holds that a picture is well-formed: each tag is closed by its own name, and text holds no control character.
#[track_caller]
pub(super) fn check_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or_else(|| panic!("a tag has no end: {part:.60}"));
        let name = tag.split_whitespace().next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        assert!(tag.matches('"').count() % 2 == 0, "{tag}");
        assert!(after.chars().all(|c| c == '\n' || !c.is_control()), "{after}");
    }
    assert!(open.is_empty() && text.starts_with("<svg"), "{open:?}");
}
