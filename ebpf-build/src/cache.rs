//! The cache folder: everything that set-up fetches or builds lives under it, nothing elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Environment variables that decide where the cache is, strongest first; a build depends on each of them.
pub const VARIABLES: [&str; 3] = ["FABRICSCOPE_CACHE", "XDG_CACHE_HOME", "HOME"];

/// The cache folder of this user: `$FABRICSCOPE_CACHE`, else `$XDG_CACHE_HOME/fabricscope`, else
/// `~/.cache/fabricscope`. It need not exist.
///
/// # Errors
/// [`Error::NoCache`] if none of the three variables names an absolute path.
pub fn dir() -> Result<PathBuf> {
    dir_from(|name| std::env::var_os(name))
}

/// [`dir`] with the environment as an argument. Relative paths do not count, as the XDG rules ask: a build
/// script and a person stand in different folders.
fn dir_from(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let absolute = |name| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let [own, xdg, home] = VARIABLES;
    absolute(own)
        .or_else(|| absolute(xdg).map(|path| path.join("fabricscope")))
        .or_else(|| absolute(home).map(|path| path.join(".cache/fabricscope")))
        .ok_or(Error::NoCache)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(environment: &[(&str, &str)], expected: Option<&str>) {
        let found = dir_from(|name| {
            let hit = environment.iter().find(|(key, _)| *key == name);
            hit.map(|(_, value)| OsString::from(value))
        });
        assert_eq!(found.ok(), expected.map(PathBuf::from));
    }

    #[test]
    fn the_strongest_absolute_variable_wins() {
        check(&[("FABRICSCOPE_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")], Some("/a"));
        check(&[("XDG_CACHE_HOME", "/b"), ("HOME", "/c")], Some("/b/fabricscope"));
        check(&[("HOME", "/c")], Some("/c/.cache/fabricscope"));
        check(&[("FABRICSCOPE_CACHE", ""), ("HOME", "/c")], Some("/c/.cache/fabricscope"));
        check(&[("FABRICSCOPE_CACHE", "here"), ("XDG_CACHE_HOME", "x"), ("HOME", "/c")], Some("/c/.cache/fabricscope"));
        check(&[], None);
    }
}
