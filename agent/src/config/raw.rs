//! A configuration file as it stands: every value with its full key and its line, and what is no TOML.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toml::de::{DeArray, DeTable, DeValue};

use super::{Problem, limits};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number; `None` for one that does not fit.
    Integer(Option<i64>),
    /// Text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// A section that holds nothing.
    EmptySection,
    /// What no key takes, by its name in TOML: `float`, `array` for one that holds more than texts.
    Other(&'static str),
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// From 1.
    pub(super) line: usize,
    /// What stands there.
    pub(super) value: Value,
}

/// All values of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Raw {
    /// By key, sections before names: `verbs.stuck_after`.
    pub(super) entries: BTreeMap<String, Entry>,
    /// What could not be read as TOML.
    pub(super) problems: Vec<Problem>,
}

/// The text of a file, or why there is none.
pub(super) fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limits::CONFIG_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > limits::CONFIG_BYTES {
        return Err(format!("is larger than {} bytes: this is no configuration file", limits::CONFIG_BYTES));
    }
    String::from_utf8(bytes).map_err(|error| format!("is not UTF-8: {error}"))
}

impl Raw {
    /// Reads all that can be read.
    pub(super) fn parse(text: &str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut raw = Self::default();
        for error in errors {
            let line = error.span().map(|span| line(text, span.start));
            raw.problems.push(Problem { line, text: format!("not TOML: {}", error.message().replace('\n', ", ")) });
        }
        raw.add(text, "", table.get_ref());
        raw
    }

    /// Depth is bounded by the parser.
    fn add(&mut self, text: &str, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key =
                if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
            let value = match value.get_ref() {
                DeValue::Table(inner) if !inner.is_empty() => {
                    self.add(text, &key, inner);
                    continue;
                }
                DeValue::Table(_) => Value::EmptySection,
                DeValue::Boolean(value) => Value::Bool(*value),
                DeValue::String(value) => Value::Text(value.to_string()),
                DeValue::Integer(value) => Value::Integer(i64::from_str_radix(value.as_str(), value.radix()).ok()),
                DeValue::Array(items) => texts(items).map_or(Value::Other("array"), Value::List),
                other => Value::Other(other.type_str()),
            };
            self.entries.insert(key, Entry { line: line(text, name.span().start), value });
        }
    }
}

/// The texts of a list; `None` if it holds anything else.
fn texts(items: &DeArray<'_>) -> Option<Vec<String>> {
    items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

/// The line of a byte, from 1.
fn line(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
