//! Tables of which the heading, the rows and JSON come from one list of fields.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::terminal::{Column, Paper, Table};

/// What stands where nothing is measured.
pub(super) const NONE: &str = "-";

/// A key of the JSON object, and its value; null is left out.
type Key<T> = (&'static str, fn(&T) -> Value);

/// A column, and what of it goes into JSON.
pub(super) struct Field<T: 'static> {
    column: Column<T>,
    keys: &'static [Key<T>],
}

impl<T> Field<T> {
    /// A column of text.
    pub(super) const fn text(column: Column<T>, keys: &'static [Key<T>]) -> Self {
        Self { column, keys }
    }

    /// A column as wide as its title, which has blanks at its left: numbers are set to the right ([`right`]).
    pub(super) const fn number(
        title: &'static str,
        rank: u8,
        value: fn(&T) -> String,
        keys: &'static [Key<T>],
    ) -> Self {
        let width = title.len();
        Self { column: Column { title, min: width, wanted: width, rank, value }, keys }
    }
}

/// Set to the right in a column of this width.
pub(super) fn right(text: impl AsRef<str>, width: usize) -> String {
    format!("{:>width$}", text.as_ref())
}

/// The heading and the rows, each on a line.
pub(super) fn lines<'a, T: 'static>(
    fields: &'static [Field<T>],
    rows: impl Iterator<Item = T> + 'a,
    paper: Paper,
) -> impl Iterator<Item = String> + 'a {
    let table = Table::new(fields.iter().map(|field| &field.column), paper);
    let heading = table.heading();
    std::iter::once(heading).chain(rows.map(move |row| table.row(&row)))
}

/// A row as a JSON object.
pub(super) struct Record<T: 'static>(pub(super) &'static [Field<T>], pub(super) T);

impl<T> Serialize for Record<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.iter().flat_map(|field| field.keys) {
            let value = value(&self.1);
            if !value.is_null() {
                map.serialize_entry(key, &value)?;
            }
        }
        map.end()
    }
}
