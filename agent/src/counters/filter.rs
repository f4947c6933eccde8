//! Which devices, drivers and ports are read. Asked before anything of a device is opened.

use std::str::FromStr;

/// Names with `*` for any letters, several between spaces or commas; those that begin with `!` are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patterns {
    taken: Vec<String>,
    left_out: Vec<String>,
}

impl FromStr for Patterns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut patterns = Self::default();
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let (list, word) = match word.strip_prefix('!') {
                Some(word) => (&mut patterns.left_out, word),
                None => (&mut patterns.taken, word),
            };
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'*' | b':');
            if word.is_empty() || !word.bytes().all(known) {
                return Err(format!("{word:?} is no name; write names such as mlx5_0 or mlx5_*, !mlx5_9 leaves out"));
            }
            list.push(word.to_owned());
        }
        Ok(patterns)
    }
}

impl Patterns {
    /// Whether a name is wanted: by one of the patterns, or any if there is none, and not left out.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let any = |list: &[String]| list.iter().any(|pattern| matches(pattern, name));
        (self.taken.is_empty() || any(&self.taken)) && !any(&self.left_out)
    }

    /// Everything is wanted.
    pub(crate) fn is_all(&self) -> bool {
        self.taken.is_empty() && self.left_out.is_empty()
    }
}

/// `*` stands for any letters, also none.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// What is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Devices, RDMA's and network's.
    pub(crate) devices: Patterns,
    /// Modules and bus drivers.
    pub(crate) drivers: Patterns,
    /// Ports of RDMA devices; all if there is none.
    pub(crate) ports: Vec<u32>,
}

impl Filter {
    /// Nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.devices.is_all() && self.drivers.is_all() && self.ports.is_empty()
    }

    /// Whether a port is wanted.
    pub(crate) fn wants_port(&self, port: u32) -> bool {
        self.ports.is_empty() || self.ports.contains(&port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: &[&str], not: &[&str]) {
        let patterns: Patterns = text.parse().unwrap();
        for name in wanted {
            assert!(patterns.wants(name), "{text} does not want {name}");
        }
        for name in not {
            assert!(!patterns.wants(name), "{text} wants {name}");
        }
    }

    #[test]
    fn names_are_chosen_by_pattern() {
        check("", &["mlx5_0", ""], &[]);
        check("mlx5_0", &["mlx5_0"], &["mlx5_01", "mlx5_", "xmlx5_0"]);
        check("mlx5_*", &["mlx5_0", "mlx5_"], &["mlx4_0", "irdma0"]);
        check("*_0, rxe*", &["mlx5_0", "bnxt_re_0", "rxe1"], &["mlx5_1"]);
        check("m*5_*0", &["mlx5_0", "mlx5_10", "m5_0"], &["mlx5_01", "lx5_0"]);
        check("!mlx5_9", &["mlx5_0"], &["mlx5_9"]);
        check("mlx5_* !mlx5_9 !*_8", &["mlx5_0"], &["mlx5_9", "mlx5_8", "rxe0"]);
        check("a*a", &["aa", "aba"], &["a"]);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["mlx5 !", "a/b", "a\nb", "ä", "mlx5_[01]"] {
            assert!(text.parse::<Patterns>().is_err(), "{text}");
        }
    }
}
