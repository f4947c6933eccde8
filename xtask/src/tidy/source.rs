//! The files tidy looks at, and their text taken apart into code and comments.

use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use anyhow::{Context, Result};

/// File names end so if a rule may look at them.
const ENDINGS: &[&str] = &["rs", "toml", "md", "proto", "yml", "yaml", "service", "sh"];

/// One text file.
#[derive(Debug)]
pub(super) struct Source {
    /// Seen from the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// For Rust: the text with comments and the insides of literals blanked, line by line. Else empty.
    pub(super) code: String,
    /// For Rust: the text with all but comments blanked. Else empty.
    pub(super) comments: String,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = if path.ends_with(".rs") { split(text) } else { Default::default() };
        Self { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Made by a program and committed; a person's rules do not hold.
    pub(super) fn is_generated(&self) -> bool {
        self.path.split('/').any(|folder| folder == "generated")
    }

    /// Each identifier and keyword of the code with its line, from 1, and where it begins in [`Self::code`].
    pub(super) fn words(&self) -> impl Iterator<Item = Word<'_>> {
        words(&self.code)
    }
}

/// One identifier or keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// From 1.
    pub(super) line: usize,
    /// Offset in bytes of its first byte.
    pub(super) start: usize,
}

fn words(code: &str) -> impl Iterator<Item = Word<'_>> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    let mut line = 1;
    std::iter::from_fn(move || {
        let rest = code.get(from..)?;
        let start = from + rest.find(in_word)?;
        let tail = code.get(start..)?;
        let end = start + tail.find(|c| !in_word(c)).unwrap_or(tail.len());
        line += code.get(from..start)?.matches('\n').count();
        from = end;
        Some(Word { text: code.get(start..end)?, line, start })
    })
}

/// Reads every text file of the workspace. Build output (cargo marks it), hidden folders other than `.cargo` and
/// `.ci`, and `out` are not looked at.
///
/// # Errors
/// Names the folder or file that cannot be read.
pub(super) fn collect(workspace: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![workspace.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type().with_context(|| format!("cannot look at {}", path.display()))?;
            if kind.is_dir() && is_ours(&path, &name) {
                folders.push(path);
            } else if kind.is_file() && ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}"))) {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let inside = path.strip_prefix(workspace).unwrap_or(&path);
                sources.push(Source::new(&inside.to_string_lossy(), &text));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn is_ours(folder: &Path, name: &str) -> bool {
    let hidden = name.starts_with('.') && !matches!(name, ".cargo" | ".ci");
    !hidden && !matches!(name, "target" | "out") && !folder.join("CACHEDIR.TAG").exists()
}

/// What the reader of [`split`] is inside of.
#[derive(Clone, Copy)]
enum Inside {
    Code,
    Line,
    /// A block comment, this deep.
    Block(usize),
    Text,
    /// A raw string that ends in a quote and this many `#`.
    Raw(usize),
}

/// Takes Rust apart into (code, comments) of equal length and equal lines.
fn split(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut inside = Inside::Code;
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let mut taken = String::from(c);
        let (next, to_code, to_comments) = match inside {
            Inside::Code => in_code(c, before, &mut chars, &mut taken),
            Inside::Line => (if c == '\n' { Inside::Code } else { inside }, false, true),
            Inside::Block(depth) => (in_block(c, depth, &mut chars, &mut taken), false, true),
            Inside::Text => (in_text(c, &mut chars, &mut taken), false, false),
            Inside::Raw(hashes) => (in_raw(c, hashes, &mut chars, &mut taken), false, false),
        };
        inside = next;
        before = taken.chars().next_back().unwrap_or(c);
        put(&mut code, &taken, to_code);
        put(&mut comments, &taken, to_comments);
    }
    (code, comments)
}

/// Blanks keep the byte length, so that an offset means the same in text, code and comments.
fn put(to: &mut String, taken: &str, shown: bool) {
    for c in taken.chars() {
        match c {
            '\n' => to.push('\n'),
            c if shown => to.push(c),
            c => to.extend(std::iter::repeat_n(' ', c.len_utf8())),
        }
    }
}

/// One step in code: what comes next, and whether what was taken is code or comment.
fn in_code(c: char, before: char, chars: &mut Peekable<Chars<'_>>, taken: &mut String) -> (Inside, bool, bool) {
    let mut ahead = chars.clone();
    match c {
        '/' if ahead.peek() == Some(&'/') => (Inside::Line, false, true),
        '/' if ahead.peek() == Some(&'*') => {
            taken.extend(chars.next());
            (Inside::Block(1), false, true)
        }
        '"' => (Inside::Text, true, false),
        'r' if !before.is_alphanumeric() && before != '_' || c == 'r' && matches!(before, 'b' | 'c') => {
            let hashes = std::iter::from_fn(|| ahead.next_if_eq(&'#')).count();
            if ahead.peek() != Some(&'"') {
                return (Inside::Code, true, false);
            }
            taken.extend(chars.by_ref().take(hashes + 1));
            (Inside::Raw(hashes), true, false)
        }
        '\'' => {
            // A character, not a lifetime: an escape, or a quote two further on.
            let first = ahead.next();
            let is_char = first == Some('\\') || ahead.next() == Some('\'');
            if !is_char {
                return (Inside::Code, true, false);
            }
            taken.extend(chars.next());
            if first == Some('\\') {
                taken.extend(chars.next());
            }
            taken.extend(chars.by_ref().take_while(|c| *c != '\''));
            taken.push('\'');
            (Inside::Code, false, false)
        }
        _ => (Inside::Code, true, false),
    }
}

fn in_block(c: char, depth: usize, chars: &mut Peekable<Chars<'_>>, taken: &mut String) -> Inside {
    match (c, chars.peek()) {
        ('*', Some('/')) => {
            taken.extend(chars.next());
            if depth == 1 { Inside::Code } else { Inside::Block(depth - 1) }
        }
        ('/', Some('*')) => {
            taken.extend(chars.next());
            Inside::Block(depth + 1)
        }
        _ => Inside::Block(depth),
    }
}

fn in_text(c: char, chars: &mut Peekable<Chars<'_>>, taken: &mut String) -> Inside {
    match c {
        '\\' => {
            taken.extend(chars.next());
            Inside::Text
        }
        '"' => Inside::Code,
        _ => Inside::Text,
    }
}

fn in_raw(c: char, hashes: usize, chars: &mut Peekable<Chars<'_>>, taken: &mut String) -> Inside {
    if c != '"' || chars.clone().take(hashes).filter(|c| *c == '#').count() != hashes {
        return Inside::Raw(hashes);
    }
    taken.extend(chars.by_ref().take(hashes));
    Inside::Code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let source = Source::new("a.rs", text);
        let found: Vec<_> = source.words().map(|word| word.text).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(source.code.len(), text.len(), "{text}");
        assert_eq!(source.comments.len(), text.len(), "{text}");
    }

    #[test]
    fn comments_and_literals_are_no_words() {
        check("let a = \"b\"; // c\nd", &["let", "a", "d"]);
        check("a /* b /* c */ d */ e", &["a", "e"]);
        check(r##"a(r#"b " c"#, r"d", br"e") f"##, &["a", "r", "r", "br", "f"]);
        check(r#"a("b\"c") d"#, &["a", "d"]);
        check("fn a<'b>(c: &'b str) {}", &["fn", "a", "b", "c", "b", "str"]);
        check(r"['a', '\'', '\u{41}', '\\', '/'] b", &["b"]);
        check("\"é // \" a", &["a"]);
        check("\"open", &[]);
    }

    #[test]
    fn a_word_knows_its_line() {
        let source = Source::new("a.rs", "a\n/* b\n */ c\n\nd");
        let lines: Vec<_> = source.words().map(|word| (word.text, word.line)).collect();
        assert_eq!(lines, [("a", 1), ("c", 3), ("d", 5)]);
    }

    #[test]
    fn comments_are_kept_apart() {
        let source = Source::new("a.rs", "a // b\n\"// c\"");
        assert_eq!(source.comments, "  // b\n      ");
    }
}
