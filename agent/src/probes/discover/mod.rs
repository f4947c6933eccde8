//! How the default set was found: heuristics that narrow all functions of the RDMA modules to a few.
//!
//! Each heuristic is a pure function over one function's name, module and type, or, for the last, over those that are
//! left. The types are the running kernel's (BTF); where a function has none, [`assumed`] takes what its name and the
//! probe table say, and the outcome says so.

mod assumed;
mod boundary;
mod compare;
mod exceptions;
mod list;
mod place;
mod resource;
#[cfg(test)]
mod tests;

pub(crate) use compare::{Verdict, compare, why_each};
pub(crate) use list::write as write_list;

use std::collections::BTreeMap;

use boundary::Role;
use place::Place;
use resource::Act;

/// A kernel function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    /// The module that holds it; empty for the kernel itself.
    pub(crate) module: String,
    /// Its name in the source, without the endings that compilers add.
    pub(crate) name: String,
    /// Its type; `None` where the kernel has no type information on it.
    pub(crate) signature: Option<Signature>,
}

/// A function's type, as far as the heuristics look at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signature {
    /// What it gives back, as C spells it, without qualifiers: `int`, `struct ib_umem*`.
    pub(crate) returns: String,
    /// How many arguments it has.
    pub(crate) arguments: usize,
    /// The structures that its arguments point to, in order.
    pub(crate) structures: Vec<String>,
}

impl Signature {
    /// From types as C spells them.
    pub(crate) fn new(returns: &str, arguments: &[String]) -> Self {
        let structure = |text: &String| structure_of(text).map(str::to_owned);
        Self {
            returns: returns.to_owned(),
            arguments: arguments.len(),
            structures: arguments.iter().filter_map(structure).collect(),
        }
    }

    /// The structure that the result points to.
    fn gives(&self) -> Option<&str> {
        structure_of(&self.returns)
    }
}

/// The name in `struct name*`.
fn structure_of(text: &str) -> Option<&str> {
    text.strip_prefix("struct ")?.strip_suffix('*').filter(|name| !name.ends_with('*'))
}

/// A heuristic: a question that each function left is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heuristic {
    /// Its short name.
    pub(crate) name: &'static str,
    /// What it asks.
    pub(crate) question: &'static str,
}

/// In the order in which they narrow.
pub(crate) const HEURISTICS: [Heuristic; 4] = [
    Heuristic { name: "boundary", question: "does it stand on the way of a verbs call from user space?" },
    Heuristic { name: "errno", question: "does it return an errno?" },
    Heuristic { name: "resource", question: "does it make, change, check or destroy a resource?" },
    Heuristic { name: "place", question: "is it the one for its place, where two views of a resource can part?" },
];

/// One function's way through the heuristics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    /// The function.
    pub(crate) function: &'a Function,
    /// How many heuristics it passed.
    pub(crate) passed: usize,
    /// Why it was dropped, or, passed by all, what its place is.
    pub(crate) reason: String,
    /// Whether its type was assumed from its name and the probe table.
    pub(crate) assumed: bool,
}

impl Outcome<'_> {
    /// True if it was left at the end.
    pub(crate) const fn is_kept(&self) -> bool {
        self.passed == HEURISTICS.len()
    }
}

/// What one function has shown of itself to the first three heuristics.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    function: &'a Function,
    signature: Signature,
    role: Role,
    act: Act,
}

/// Asks every function every question. The outcomes are in the functions' order.
pub(crate) fn narrow(functions: &[Function]) -> Vec<Outcome<'_>> {
    let firsts: Vec<_> = functions.iter().map(first_three).collect();
    let firsts: Vec<_> = firsts.into_iter().map(|first| first.map(|c| (place::of(&c), c))).collect();
    let serving = one_per_place(firsts.iter().flatten());
    let outcome = |(function, first): (_, &Result<Placed<'_>, (usize, String)>)| {
        let function: &Function = function;
        let (passed, reason) = match first {
            Err((passed, reason)) => (*passed, reason.clone()),
            Ok((Err(reason), _)) => (3, reason.clone()),
            Ok((Ok((place, key)), _)) => match serving.get(key) {
                Some(first) if first.function != function => (3, format!("same place as {}", first.function.name)),
                _ => (HEURISTICS.len(), place.sentence().to_owned()),
            },
        };
        Outcome { function, passed, reason, assumed: function.signature.is_none() }
    };
    functions.iter().zip(&firsts).map(outcome).collect()
}

/// A candidate with its place, or why it has none.
type Placed<'a> = (Result<(Place, place::Key), String>, Candidate<'a>);

/// The heuristics that look at one function alone. The error is how many it passed, and why no more.
fn first_three(function: &Function) -> Result<Candidate<'_>, (usize, String)> {
    let known = || function.signature.clone().or_else(|| assumed::signature(&function.module, &function.name));
    let signature = known().ok_or_else(|| (0, "no type information, and its name tells nothing".to_owned()))?;
    let role = boundary::role(function, &signature)
        .ok_or_else(|| (0, "takes and gives nothing that belongs to a verbs call".to_owned()))?;
    if !returns_errno(&signature.returns) {
        let returns = match signature.returns.as_str() {
            "" => "no type information, and no row of the probe table names it".to_owned(),
            returns => format!("returns {returns}"),
        };
        return Err((1, returns));
    }
    let act = resource::act(function, role)
        .ok_or_else(|| (2, "its name tells of no resource that it makes, changes, checks or destroys".to_owned()))?;
    Ok(Candidate { function, signature, role, act })
}

/// Second heuristic: an `int` or `long` can be a negative errno, and a pointer to a structure one made by `ERR_PTR`
/// (include/linux/err.h). Types do not tell which functions do so; `bool`, unsigned integers and enums cannot.
fn returns_errno(returns: &str) -> bool {
    matches!(returns, "int" | "long" | "long int" | "ssize_t") || structure_of(returns).is_some()
}

/// Fourth heuristic: of the functions in the same place, the first in the place's order.
fn one_per_place<'a>(placed: impl Iterator<Item = &'a Placed<'a>>) -> BTreeMap<&'a place::Key, &'a Candidate<'a>> {
    let mut serving: BTreeMap<&place::Key, &Candidate<'_>> = BTreeMap::new();
    for (place, candidate) in placed {
        let Ok((_, key)) = place else { continue };
        let first = serving.entry(key).or_insert(candidate);
        if place::order(candidate) < place::order(first) {
            *first = candidate;
        }
    }
    serving
}
