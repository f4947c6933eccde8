//! How a file looks: its first line, its length and its functions', words it must not hold.

use super::Finding;
use super::source::{Source, Word};

/// Lines of a Rust file.
const FILE_LINES_MAX: usize = 400;

/// Lines of a function, from `fn` to the closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Marks of unfinished work; each names its owner in parentheses.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

fn rust(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.is_rust() && !source.is_generated())
}

fn finding(source: &Source, line: usize, item: &str, message: String) -> Finding {
    Finding { path: source.path.clone(), line, item: item.to_owned(), message }
}

/// The first line of a Rust file says its subject.
pub(super) fn doc_line(sources: &[Source]) -> Vec<Finding> {
    let says = |source: &Source| {
        let first = source.text.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_some_and(|subject| !subject.trim().is_empty())
    };
    let silent = rust(sources).filter(|source| !says(source));
    let message = || "the first line is no `//!` line that says the file's subject".to_owned();
    silent.map(|source| finding(source, 1, "//!", message())).collect()
}

pub(super) fn file_length(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust(sources) {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            let message = format!("{lines} lines, {FILE_LINES_MAX} at most: split it by subject");
            findings.push(finding(source, FILE_LINES_MAX, "file", message));
        }
    }
    findings
}

pub(super) fn function_length(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust(sources) {
        for function in functions(source) {
            let lines = function.lines;
            if lines > FUNCTION_LINES_MAX {
                let message = format!("`{}` has {lines} lines, {FUNCTION_LINES_MAX} at most", function.name.text);
                findings.push(finding(source, function.name.line, function.name.text, message));
            }
        }
    }
    findings
}

struct Function<'a> {
    name: Word<'a>,
    lines: usize,
}

/// Every function with a body: the word `fn`, a name, and the braces that follow outside of all parentheses.
fn functions(source: &Source) -> impl Iterator<Item = Function<'_>> {
    let pairs = source.words().zip(source.words().skip(1));
    pairs.filter_map(|(keyword, name)| {
        let after = keyword.start + keyword.text.len();
        let between = source.code.get(after..name.start)?;
        if keyword.text != "fn" || !between.chars().all(char::is_whitespace) {
            return None;
        }
        let lines = body_end(source.code.get(name.start..)?)?;
        Some(Function { name, lines: lines + 1 })
    })
}

/// How many lines further the body that begins in `code` ends; nothing for a declaration without one.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut others, mut lines) = (0_usize, 0_usize, 0_usize);
    for c in code.chars() {
        match c {
            '\n' => lines += 1,
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(lines),
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

pub(super) fn owned_todo(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| !source.is_generated()) {
        let text = if source.is_rust() { &source.comments } else { &source.text };
        for (line, text) in (1..).zip(text.lines()) {
            for mark in MARKS.iter().filter(|mark| text.match_indices(**mark).any(|(at, _)| is_orphan(text, at, mark)))
            {
                let message = format!("{mark} without an owner: write {mark}(name), or do it");
                findings.push(finding(source, line, mark, message));
            }
        }
    }
    findings
}

/// Whether `mark` at `at` is a word of its own and no owner follows in parentheses.
fn is_orphan(text: &str, at: usize, mark: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let after = text.get(at + mark.len()..).unwrap_or_default();
    if text.get(..at).unwrap_or_default().ends_with(in_word) || after.starts_with(in_word) {
        return false;
    }
    let owner = after.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    owner.is_none_or(|(owner, _)| owner.trim().is_empty())
}

/// A test that does not run says nothing.
pub(super) fn ignored_test(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust(sources) {
        for word in source.words().filter(|word| word.text == "ignore") {
            if source.code.get(..word.start).unwrap_or_default().trim_end().ends_with("#[") {
                let message = "an ignored test: probe for what it needs and say that it is absent".to_owned();
                findings.push(finding(source, word.line, word.text, message));
            }
        }
    }
    findings
}

/// A test that sleeps is slow when it passes and flaky when the machine is busy.
pub(super) fn sleep_in_tests(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust(sources) {
        let from = tests_from(source);
        for word in source.words().filter(|word| word.text == "sleep" && word.start >= from) {
            let message = "a test sleeps: wait for what it waits for, with a deadline".to_owned();
            findings.push(finding(source, word.line, word.text, message));
        }
    }
    findings
}

/// Where the tests of a file begin; past its end if it has none.
fn tests_from(source: &Source) -> usize {
    let is_test_file = source.path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    if is_test_file { 0 } else { source.code.find("#[cfg(test)]").unwrap_or(usize::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&[Source]) -> Vec<Finding>, path: &str, text: &str, expected: &[(usize, &str)]) {
        let found = rule(&[Source::new(path, text)]);
        let items: Vec<_> = found.iter().map(|finding| (finding.line, finding.item.as_str())).collect();
        assert_eq!(items, expected, "{path}: {text:.60}");
    }

    #[test]
    fn the_first_line_says_the_subject() {
        check(doc_line, "a/src/b.rs", "//! Subject.\n", &[]);
        check(doc_line, "a/src/b.rs", "use x;\n//! Subject.\n", &[(1, "//!")]);
        check(doc_line, "a/src/b.rs", "//!\n", &[(1, "//!")]);
        check(doc_line, "a/src/b.rs", "", &[(1, "//!")]);
        check(doc_line, "a/src/generated/b.rs", "use x;", &[]);
        check(doc_line, "README.md", "x", &[]);
    }

    #[test]
    fn files_have_four_hundred_lines() {
        check(file_length, "a.rs", &"x\n".repeat(400), &[]);
        check(file_length, "a.rs", &"x\n".repeat(401), &[(400, "file")]);
    }

    fn function(lines: usize) -> String {
        format!("struct A;\nfn long(a: [u8; 4])\nwhere\n    B: C,\n{{\n{}}}\n", "    {}\n".repeat(lines - 5))
    }

    #[test]
    fn functions_have_seventy_lines() {
        check(function_length, "a.rs", &function(70), &[]);
        check(function_length, "a.rs", &function(71), &[(2, "long")]);
    }

    #[test]
    fn declarations_and_pointers_are_no_functions() {
        let rest = "\n".repeat(80);
        check(function_length, "a.rs", &format!("trait A {{ fn b(&self); {rest} }}"), &[]);
        check(function_length, "a.rs", &format!("struct A {{ b: fn(u8) -> u8, {rest} }}"), &[]);
        check(function_length, "a.rs", &format!("// fn b() {{\n{rest} }}"), &[]);
    }

    #[test]
    fn unfinished_work_has_an_owner() {
        check(owned_todo, "a.rs", "// TODO: x\n// TODO(ann): x\nlet TODO = 1;", &[(1, "TODO")]);
        check(owned_todo, "a.md", "x FIXME\nmethodTODO XXXL\nXXX()", &[(1, "FIXME"), (3, "XXX")]);
    }

    #[test]
    fn tests_neither_sleep_nor_sit_out() {
        check(
            ignored_test,
            "a.rs",
            "#[ignore]\n#[ignore = \"x\"]\n// #[ignore]\nignore()",
            &[(1, "ignore"), (2, "ignore")],
        );
        check(sleep_in_tests, "tests/src/a.rs", "use std::thread::sleep;", &[(1, "sleep")]);
        check(
            sleep_in_tests,
            "a/src/b.rs",
            "sleep();\n#[cfg(test)]\nmod tests { fn a() { thread::sleep(x) } }",
            &[(3, "sleep")],
        );
        check(sleep_in_tests, "a/src/b.rs", "sleep();\n#[cfg(test)]\nfn a() { command(\"sleep\") }", &[]);
    }
}
