//! The rows, one file per layer or driver, and what makes them short to write.

mod bnxt;
mod cm;
mod core;
mod efa;
mod events;
mod health;
mod hns;
mod irdma;
mod mana;
mod mlx4;
mod mlx5;
mod rxe;
mod siw;
mod syscall;
mod uverbs;

use super::{Fails, Hook, Layer, Program, Subject};

/// In the order of the rows' numbers. A row that stands in for another (`unless`) comes after it.
const PARTS: &[&[Hook]] = &[
    syscall::ROWS,
    uverbs::ROWS,
    core::ROWS,
    cm::ROWS,
    rxe::ROWS,
    mlx5::ROWS,
    mlx4::ROWS,
    bnxt::ROWS,
    irdma::ROWS,
    mana::ROWS,
    efa::ROWS,
    hns::ROWS,
    siw::ROWS,
    events::ROWS,
    health::ROWS,
];

/// How many hooks there are.
pub(crate) const ROWS: usize = count(PARTS);

static ALL: [Hook; ROWS] = joined(PARTS);

/// Every hook.
pub(crate) static TABLE: &[Hook] = &ALL;

const fn count(parts: &[&[Hook]]) -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

const fn joined<const N: usize>(parts: &[&[Hook]]) -> [Hook; N] {
    let mut all = [parts[0][0]; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            all[at] = parts[part][row];
            at += 1;
            row += 1;
        }
        part += 1;
    }
    all
}

/// A row that is always on, seen to attach, of a function that returns a negative errno as `int`.
const fn row(
    layer: Layer,
    modules: &'static [&'static str],
    name: &'static str,
    functions: &'static [&'static str],
) -> Hook {
    Hook {
        name,
        layer,
        subject: Subject::Verbs,
        program: Program::Inner,
        functions,
        fails: Fails::Int,
        modules,
        default: true,
        verified: true,
        unless: None,
    }
}

impl Hook {
    /// A `long`, or a pointer made by `ERR_PTR`.
    const fn long(self) -> Self {
        Self { fails: Fails::Long, ..self }
    }

    /// Attached for sessions only.
    const fn session(self) -> Self {
        Self { default: false, ..self }
    }

    /// Taken from the driver's source, never seen to attach.
    const fn unverified(self) -> Self {
        Self { verified: false, ..self }
    }

    /// Stands in for another row where that one is not attached.
    const fn unless(self, other: &'static str) -> Self {
        Self { unless: Some(other), ..self }
    }

    const fn runs(self, program: Program) -> Self {
        Self { program, ..self }
    }

    const fn about(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }
}
