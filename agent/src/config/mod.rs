//! The configuration file: read as it stands (`raw`), then checked once into what the agent runs on (`checked`).

pub(crate) mod bursts;
pub(crate) mod checked;
pub(crate) mod limits;
pub(crate) mod rate;
mod raw;
#[cfg(test)]
mod tests;
pub(crate) mod time;
pub(crate) mod units;

use std::fmt;
use std::path::Path;

pub(crate) use checked::Config;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1; absent for what stands nowhere.
    pub(crate) line: Option<usize>,
    /// What is wrong and what to do about it.
    pub(crate) text: String,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Problems {
    /// The file's name, as it was given.
    pub(crate) file: String,
    /// At least one, by rising line.
    pub(crate) problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if let Some(line) = problem.line {
                write!(f, ":{line}")?;
            }
            write!(f, ": {}", problem.text)?;
        }
        Ok(())
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, at once; a file that cannot be read is one problem.
    pub(crate) fn read(path: &Path) -> Result<Self, Problems> {
        let file = path.display().to_string();
        match raw::text(path) {
            Ok(text) => Self::parse(&text).map_err(|problems| Problems { file, problems }),
            Err(text) => Err(Problems { file, problems: vec![Problem { line: None, text }] }),
        }
    }

    /// Checks a file's text.
    ///
    /// # Errors
    ///
    /// As for [`Config::read`].
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        checked::check(raw::Raw::parse(text))
    }
}
