//! Samples as CSV: the columns of a sample file, a line a sample. Written only: what it does not say is lost.

use std::fmt::Write as _;

use analysis::series::{Sample, Series};
use jiff::Timestamp;

use super::columns::{COLUMNS, Cells, Column};
use super::encode::estimate;

/// The text that holds this series.
pub(super) fn to_csv(series: &Series) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let mut text = names.join(",");
    text.push('\n');
    for sample in &series.samples {
        for (index, column) in COLUMNS.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            if (column.measured)(&series.fields) {
                column.cell(series, sample, &mut text);
            }
        }
        text.push('\n');
    }
    text
}

impl Column {
    fn cell(&self, series: &Series, sample: &Sample, text: &mut String) {
        // Writing to a string does not fail.
        let _ = match self.cells {
            Cells::Text(get) => text.write_str(&quoted(get(series))),
            // Every number of nanoseconds in 64 bits is a time.
            Cells::Time(get, _) => {
                Timestamp::from_nanosecond(get(sample).into()).map_or(Ok(()), |time| write!(text, "{time:.9}"))
            }
            Cells::Number(get, _) => write!(text, "{}", get(sample)),
            Cells::Sketch(get, _) => write!(text, "{:032x}", get(sample).0),
            Cells::Flows(get) => write!(text, "{}", estimate(get(sample))),
        };
    }
}

/// A text as one cell: RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use analysis::series::{DurationNs, Fields, Measured, Sketch, Traffic, UtcNs};

    use super::*;

    #[test]
    fn a_line_a_sample_and_nothing_where_nothing_was_measured() {
        let tx = Traffic { bytes: 1500, packets: 1, flows: Sketch(0xff), ..Traffic::default() };
        let start = UtcNs(1_767_225_600_000_000_001);
        let sample = Sample { start, length: DurationNs(1_000_000), tx, ..Sample::default() };
        let flows = Measured { flows: true, ..Measured::NOTHING };
        let fields = Fields { rx: flows, tx: Measured { bytes: true, ..flows } };
        let series = Series {
            host: "a,b".to_owned(),
            netdev: "eth0".to_owned(),
            fields,
            samples: vec![sample],
            ..Series::default()
        };
        let text = to_csv(&series);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let zero = "0".repeat(32);
        let rx = format!(",,,,,0,{zero},,,,,,,");
        let tx = format!("1500,,,,,8,{}ff,,,,,,,,", "0".repeat(30));
        assert_eq!(lines[1], format!("\"a,b\",eth0,2026-01-01T00:00:00.000000001Z,1000000,{rx},{tx}"));
        assert_eq!(lines[0].split(',').count(), COLUMNS.len());
    }
}
