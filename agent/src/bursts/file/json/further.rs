//! What the layout of Millisampler has no place for: it stands under the key `fabricscope`.

use std::collections::BTreeMap;

use analysis::series::{Sample, Series, Sketch};
use serde::{Deserialize, Serialize};

use super::super::columns::{COLUMNS, Cells, Column};
use super::super::error::Fault;
use super::super::meta::Meta;
use super::{MEASURES, Places};

/// All of a series that the other keys do not say.
#[derive(Deserialize, Serialize)]
pub(super) struct Further {
    #[serde(flatten)]
    pub(super) meta: Meta,
    /// Absent in files that were written when there was no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) columns: Option<Columns>,
}

/// Columns of a sample file by name, an element a sample. One that is 0 in each sample is left out.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct Columns(BTreeMap<String, Cell>);

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Cell {
    Numbers(Vec<u64>),
    /// Sketches in hexadecimal digits.
    Sketches(Vec<String>),
}

/// Whether the layout has no place of its own for this column.
fn is_further(column: &Column) -> bool {
    let has_place = |name: &str| MEASURES.iter().any(|measure| measure.column == name);
    // The interval and the place in an array say when a sample was.
    column.name != "length_ns" && !has_place(column.name)
}

impl Columns {
    /// Those of a series.
    pub(super) fn of(series: &Series, places: &Places) -> Result<Self, Fault> {
        let mut all = BTreeMap::new();
        let wanted = COLUMNS.iter().filter(|column| is_further(column) && (column.measured)(&series.fields));
        for column in wanted {
            let cells = match column.cells {
                Cells::Number(get, _) => {
                    let add = |sum: &mut u64, sample: &Sample| *sum = sum.saturating_add(get(sample));
                    let numbers = places.fill(series, add)?;
                    numbers.iter().any(|number| *number > 0).then_some(Cell::Numbers(numbers))
                }
                Cells::Sketch(get, _) => {
                    let sketches = places.fill(series, |all: &mut u128, sample| *all |= get(sample).0)?;
                    let digits = || sketches.iter().map(|sketch| format!("{sketch:x}")).collect();
                    sketches.iter().any(|sketch| *sketch > 0).then(|| Cell::Sketches(digits()))
                }
                Cells::Text(_) | Cells::Time(..) | Cells::Flows(_) => None,
            };
            all.extend(cells.map(|cells| (column.name.to_owned(), cells)));
        }
        Ok(Self(all))
    }

    /// How many samples the shortest column has.
    pub(super) fn shortest(&self) -> Option<usize> {
        let length = |cell: &Cell| match cell {
            Cell::Numbers(numbers) => numbers.len(),
            Cell::Sketches(sketches) => sketches.len(),
        };
        self.0.values().map(length).min()
    }

    /// Puts what is measured into the samples of a series, which stand in its order.
    pub(super) fn put(&self, series: &mut Series) -> Result<(), Fault> {
        let damaged = |name: &str| Fault::Damaged(format!("its column {name} holds what is no such value"));
        for column in COLUMNS.iter().filter(|column| is_further(column) && (column.measured)(&series.fields)) {
            match (column.cells, self.0.get(column.name)) {
                (Cells::Number(_, set), Some(Cell::Numbers(numbers))) => {
                    series.samples.iter_mut().zip(numbers).for_each(|(sample, number)| set(sample, *number));
                }
                (Cells::Sketch(_, set), Some(Cell::Sketches(sketches))) => {
                    for (sample, digits) in series.samples.iter_mut().zip(sketches) {
                        let bits = u128::from_str_radix(digits, 16).map_err(|_| damaged(column.name))?;
                        set(sample, Sketch(bits));
                    }
                }
                (_, None) => {}
                _ => return Err(damaged(column.name)),
            }
        }
        Ok(())
    }
}
