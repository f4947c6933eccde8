//! Kprobe events in tracefs: the return probe whose pool is large enough that none is missed.
//!
//! A return probe of the perf kind has about as many instances as the machine has CPUs, and a call that finds none free
//! is missed in silence. An event made here has a pool of its own. It outlives its maker when that is killed, disabled;
//! so its group's name says who made it, and what a dead process left behind can be told from what a live one uses.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::host::process;

/// What every group's name begins with.
const PREFIX: &str = "fabricscope_";

/// Why nothing of it can be used, and what to do.
pub(crate) const NOT_MOUNTED: &str = "no tracefs is mounted (mount -t tracefs tracefs /sys/kernel/tracing)";

/// Hits and misses of events, by their names.
pub(crate) type Profile = HashMap<String, (u64, u64)>;

/// Where a kprobe event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At the function's entry.
    Entry,
    /// At its return, with a pool of so many instances.
    Return(u32),
}

/// The events of one process.
#[derive(Debug)]
pub(crate) struct Events {
    root: PathBuf,
    group: String,
}

/// An event that has been made; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Event {
    root: PathBuf,
    group: String,
    name: String,
    /// The number by which perf knows it.
    pub(crate) id: u64,
}

impl Events {
    /// Events of this process in a tracefs.
    ///
    /// # Errors
    ///
    /// If there is no writable `kprobe_events`.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        OpenOptions::new().append(true).open(root.join("kprobe_events"))?;
        let own = process::identity(std::process::id()).ok_or_else(|| io::Error::other("no /proc/self/stat"))?;
        Ok(Self { root: root.to_owned(), group: format!("{PREFIX}{own}") })
    }

    /// Makes an event on a function (`module` empty for vmlinux).
    ///
    /// # Errors
    ///
    /// The kernel's error: `ENOENT` for no such function, `EINVAL` for one that may not be probed.
    pub(crate) fn make(&self, name: &str, at: At, module: &str, function: &str) -> io::Result<Event> {
        let name: String =
            name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).take(50).collect();
        let (kind, suffix) = match at {
            At::Entry => ("p".to_owned(), "entry"),
            At::Return(pool) => (format!("r{pool}"), "return"),
        };
        let target = if module.is_empty() { function.to_owned() } else { format!("{module}:{function}") };
        let name = format!("{name}_{suffix}");
        write_line(&self.root, &format!("{kind}:{}/{name} {target}", self.group))?;
        let mut event = Event { root: self.root.clone(), group: self.group.clone(), name, id: 0 };
        let path = self.root.join("events").join(&event.group).join(&event.name).join("id");
        let text = std::fs::read_to_string(path)?;
        event.id = text.trim().parse().map_err(|_| io::Error::other("an event without a number"))?;
        Ok(event)
    }

    /// Hits and misses of this process's events, by event name.
    pub(crate) fn profile(&self) -> Profile {
        let text = std::fs::read_to_string(self.root.join("kprobe_profile")).unwrap_or_default();
        parse_profile(&text)
    }
}

impl Event {
    /// Its name within the group.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; what stays is removed at the next start.
        let _ = write_line(&self.root, &format!("-:{}/{}", self.group, self.name));
    }
}

fn write_line(root: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(root.join("kprobe_events"))?;
    file.write_all(line.as_bytes())
}

/// Lines of `kprobe_profile`: name, hits, misses.
fn parse_profile(text: &str) -> Profile {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        Some((name, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
    };
    text.lines().filter_map(line).collect()
}

/// Removes the events whose makers are dead; says how many.
///
/// # Errors
///
/// If `kprobe_events` cannot be read.
pub(crate) fn remove_leftovers(root: &Path) -> io::Result<usize> {
    let text = std::fs::read_to_string(root.join("kprobe_events"))?;
    let dead = |group: &str| group.strip_prefix(PREFIX).and_then(process::is_alive) == Some(false);
    let mut removed = 0;
    for (group, name) in parse_events(&text) {
        if dead(group) && write_line(root, &format!("-:{group}/{name}")).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Group and name of each line of `kprobe_events`: `r4096:group/name target …`.
fn parse_events(text: &str) -> Vec<(&str, &str)> {
    let line = |line: &'_ str| -> Option<(usize, usize, usize)> {
        let start = line.find(':')? + 1;
        let end = line.find(' ').unwrap_or(line.len());
        let slash = start + line.get(start..end)?.find('/')?;
        Some((start, slash, end))
    };
    text.lines()
        .filter_map(|text| {
            let (start, slash, end) = line(text)?;
            Some((text.get(start..slash)?, text.get(slash + 1..end)?))
        })
        .collect()
}

/// Byte offsets of the fields of an event's record, from its `format` file.
///
/// # Errors
///
/// If there is no such event.
pub(crate) fn fields(root: &Path, event: &str) -> io::Result<(u64, HashMap<String, u32>)> {
    let folder = root.join("events").join(event);
    let id = std::fs::read_to_string(folder.join("id"))?;
    let id = id.trim().parse().map_err(|_| io::Error::other("an event without a number"))?;
    Ok((id, parse_format(&std::fs::read_to_string(folder.join("format"))?)))
}

/// A line `field:unsigned char srcaddr[28]; offset:16; size:28; signed:0;` gives `srcaddr` at 16.
fn parse_format(text: &str) -> HashMap<String, u32> {
    let line = |line: &str| {
        let rest = line.trim().strip_prefix("field:")?;
        let (declaration, rest) = rest.split_once(';')?;
        // An array's length may be any expression; a dynamic array's brackets stand before the name.
        let plain = if declaration.ends_with(']') { declaration.split('[').next()? } else { declaration };
        let name = plain.split_whitespace().next_back()?.trim_start_matches('*').to_owned();
        let offset = rest.trim().strip_prefix("offset:")?.split(';').next()?.parse().ok()?;
        Some((name, offset))
    };
    text.lines().filter_map(line).collect()
}

/// The names of a field's values, which an event's `format` file spells for whoever prints the event.
///
/// # Errors
///
/// If there is no such event.
pub(crate) fn symbols(root: &Path, event: &str) -> io::Result<HashMap<u64, String>> {
    let text = std::fs::read_to_string(root.join("events").join(event).join("format"))?;
    Ok(parse_symbols(&text))
}

/// Each `{ 2, "NOT_SPECIFIED" }` gives a number its name.
fn parse_symbols(text: &str) -> HashMap<u64, String> {
    let pair = |pair: &str| {
        let (number, name) = pair.split_once('}')?.0.split_once(',')?;
        Some((number.trim().parse().ok()?, name.trim().trim_matches('"').to_owned()))
    };
    text.split('{').skip(1).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_group_and_name() {
        let text =
            "r4096:fabricscope_7_99/ioctl_return ib_uverbs:ib_uverbs_ioctl\np:kprobes/mine vfs_read a=%di\n\nodd\n";
        assert_eq!(parse_events(text), [("fabricscope_7_99", "ioctl_return"), ("kprobes", "mine")]);
    }

    #[test]
    fn profiles_are_read_and_odd_lines_passed_over() {
        let text = "  ioctl_return    64    3\n  odd\n  other x y\n";
        assert_eq!(parse_profile(text), HashMap::from([("ioctl_return".to_owned(), (64, 3))]));
    }

    #[test]
    fn values_are_named_by_the_format() {
        let text = "print fmt: \"reason: %s\", __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 3, \"NO_SOCKET\" \
                    }, { REC, \"ODD\" }, { 0, \"\" }, {";
        let expected = [(2, "NOT_SPECIFIED"), (3, "NO_SOCKET"), (0, "")];
        assert_eq!(parse_symbols(text), expected.map(|(number, name)| (number, name.to_owned())).into());
    }

    #[test]
    fn record_fields_are_read_from_the_format() {
        let text = "name: cm_event_handler\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:u32 cm_id;\toffset:8;\tsize:4;\tsigned:0;\n\
                    \tfield:unsigned char srcaddr[sizeof(struct sockaddr_in6)];\toffset:24;\tsize:28;\tsigned:0;\n\
                    \tfield:__data_loc char[] name;\toffset:60;\tsize:4;\tsigned:1;\n";
        let expected = [("common_type", 0), ("cm_id", 8), ("srcaddr", 24), ("name", 60)];
        assert_eq!(parse_format(text), expected.map(|(name, at)| (name.to_owned(), at)).into());
    }
}
