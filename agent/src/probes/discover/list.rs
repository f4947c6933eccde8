//! A kernel's functions as text: written by `fabricscope hooks --discover -o functions`, read by tests.
//!
//! One line for functions of one module and type: module, result, number of arguments, structures that a heuristic
//! looks at, names. Fields stand between tabs, their parts between spaces; `?` is a type that is not known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Function, Signature, boundary};

/// Writes functions. Structures that no heuristic looks at are left out.
pub(crate) fn write(functions: &[Function]) -> String {
    let mut lines: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for function in functions {
        let kind = match &function.signature {
            None => "?\t0\t".to_owned(),
            Some(signature) => {
                let known = |name: &&String| boundary::is_known(name);
                let structures: Vec<&str> = signature.structures.iter().filter(known).map(String::as_str).collect();
                format!("{}\t{}\t{}", signature.returns, signature.arguments, structures.join(" "))
            }
        };
        lines.entry(format!("{}\t{kind}", function.module)).or_default().push(&function.name);
    }
    let mut text = String::new();
    for (head, mut names) in lines {
        names.sort_unstable();
        names.dedup();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{head}\t{}", names.join(" "));
    }
    text
}

/// Reads what [`write`] wrote; `None` for anything else.
#[cfg_attr(not(test), expect(dead_code, reason = "the recorded lists are read by tests"))]
pub(crate) fn read(text: &str) -> Option<Vec<Function>> {
    let mut functions = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [module, returns, arguments, structures, names] = fields.as_slice() else { return None };
        let signature = match *returns {
            "?" => None,
            returns => Some(Signature {
                returns: returns.to_owned(),
                arguments: arguments.parse().ok()?,
                structures: structures.split_whitespace().map(str::to_owned).collect(),
            }),
        };
        let function =
            |name: &str| Function { module: (*module).to_owned(), name: name.to_owned(), signature: signature.clone() };
        functions.extend(names.split_whitespace().map(function));
    }
    Some(functions)
}
