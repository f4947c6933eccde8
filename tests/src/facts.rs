//! The known calls: what each ends with on each kernel, and the layer and function that refuse it.
//!
//! The tables were written down from runs on real kernels: `facts/*-failures.tsv` what the program and strace saw,
//! `facts/verbs-layers.tsv` what a probe on every function of the RDMA modules saw, `facts/siw-layers.tsv` what the
//! kernel's source says of what the agent told.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};

/// The calls and how they end.
pub const FAILURES: &str = include_str!("../facts/verbs-failures.tsv");
/// The layer and the function that refuse them.
pub const LAYERS: &str = include_str!("../facts/verbs-layers.tsv");

/// The same calls on soft-iWARP.
pub const SIW_FAILURES: &str = include_str!("../facts/siw-failures.tsv");
/// The layer and the function that refuse them there.
pub const SIW_LAYERS: &str = include_str!("../facts/siw-layers.tsv");

/// Error the kernel keeps to itself for an unknown ioctl; user space sees ENOTTY (include/linux/errno.h, ENOIOCTLCMD).
const ENOIOCTLCMD: u32 = 515;
/// ENOTTY.
const ENOTTY: u32 = 25;

/// What a call is to whoever watches the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It succeeds: no event.
    Ok,
    /// It succeeds, and makes one probing call that is refused on the way.
    OkWithProbe,
    /// User space refuses it before any system call: no event.
    UserSpace,
    /// The kernel refuses it: one event.
    Failure,
    /// The kernel refuses it because it asks what there is: one event with `--probes` only.
    Probe,
}

/// Where the kernel refuses a call: the innermost failing function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Innermost {
    /// The layer: one of these.
    pub layers: Vec<String>,
    /// The kernel function.
    pub function: String,
    /// The error's positive number, as user space sees it.
    pub error: u32,
}

/// One call on one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The call's name.
    pub recipe: String,
    /// The verb its event names.
    pub verb: String,
    /// What it is.
    pub class: Class,
    /// What the program sees: the error's name, or `ok`.
    pub errno: String,
    /// The error's name in the event: that of the system call that is refused.
    pub refused_with: Option<String>,
    /// Where it is refused; none where no system call is.
    pub innermost: Option<Innermost>,
}

/// Reads both tables for one kernel (`6.12`).
///
/// # Errors
/// When a table lacks the kernel or is not what it should be: a cell that cannot be read, a refused call without a
/// layer, a layer without a call, a call that stands there twice.
pub fn expected(failures: &str, layers: &str, kernel: &str) -> Result<Vec<Expected>> {
    let places = places(layers, kernel)?;
    let table = Table::parse(failures)?;
    let [recipe, verb, class] = [table.column("recipe")?, table.column("verb")?, table.column("class")?];
    let errno = table.column(&format!("{kernel} errno"))?;
    let syscalls = table.column(&format!("{kernel} syscalls"))?;
    let mut all = Vec::new();
    let mut names = BTreeSet::new();
    for row in &table.rows {
        let name = row[recipe];
        ensure!(names.insert(name), "{name} stands there twice");
        let class = class_of(row[class], row[errno]).with_context(|| name.to_owned())?;
        let refused = matches!(class, Class::Failure | Class::Probe | Class::OkWithProbe);
        let refused_with = row[syscalls].split(',').filter_map(|call| call.split_once(':')).find(|call| call.1 != "ok");
        ensure!(refused == refused_with.is_some(), "{name}: its class and its system calls do not agree");
        let innermost = places.iter().find(|place| place.0 == name).and_then(|place| place.1.clone());
        ensure!(refused == innermost.is_some(), "{name}: its class and the table of layers do not agree");
        all.push(Expected {
            recipe: name.to_owned(),
            verb: row[verb].to_owned(),
            class,
            errno: row[errno].to_owned(),
            refused_with: refused_with.map(|call| call.1.to_owned()),
            innermost,
        });
    }
    for (name, _) in &places {
        ensure!(names.contains(name), "{name} has a layer but is no call");
    }
    Ok(all)
}

fn class_of(cell: &str, errno: &str) -> Result<Class> {
    Ok(match cell {
        "ok" => Class::Ok,
        "ok (with one probe)" => Class::OkWithProbe,
        "user space" => Class::UserSpace,
        "probe" => Class::Probe,
        // What some kernels refuse others can do.
        _ if cell.starts_with("failure") && errno == "ok" => Class::Ok,
        _ if cell.starts_with("failure") => Class::Failure,
        _ => bail!("no such class: {cell}"),
    })
}

/// Each call of the table of layers with its place on this kernel; `-` is none.
fn places<'a>(layers: &'a str, kernel: &str) -> Result<Vec<(&'a str, Option<Innermost>)>> {
    let table = Table::parse(layers)?;
    let (recipe, layer) = (table.column("recipe")?, table.column("layer")?);
    let innermost = table.column(&format!("{kernel} innermost"))?;
    let place = |row: &Vec<&'a str>| {
        let place = innermost_of(row[layer], row[innermost]).with_context(|| row[recipe].to_owned())?;
        Ok((row[recipe], place))
    };
    table.rows.iter().map(place).collect()
}

fn innermost_of(layers: &str, cell: &str) -> Result<Option<Innermost>> {
    if cell == "-" {
        return Ok(None);
    }
    let (function, error) = cell.rsplit_once('-').context("function-error")?;
    let error = match error.parse().with_context(|| format!("the error of {cell}"))? {
        ENOIOCTLCMD => ENOTTY,
        error => error,
    };
    let layers = layers.split('/').map(str::to_owned).collect();
    Ok(Some(Innermost { layers, function: function.to_owned(), error }))
}

/// A table with tabs: a line of names, then rows with as many cells.
struct Table<'a> {
    names: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let names = lines.next().context("an empty table")?;
        let rows: Vec<_> = lines.collect();
        for row in &rows {
            ensure!(row.len() == names.len(), "{} cells in place of {}: {}", row.len(), names.len(), row.join(" | "));
        }
        Ok(Table { names, rows })
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|other| *other == name).with_context(|| format!("no column {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [&str; 3] = ["6.1", "6.12", "7.3"];

    #[track_caller]
    fn check(kernel: &str, recipe: &str, class: Class, errno: &str, place: Option<(&str, &str, u32)>) {
        let all = expected(FAILURES, LAYERS, kernel).unwrap();
        let row = all.iter().find(|row| row.recipe == recipe).unwrap();
        let seen = row.innermost.as_ref().map(|at| (at.layers.join("/"), at.function.clone(), at.error));
        assert_eq!((row.class, &*row.errno), (class, errno));
        assert_eq!(seen, place.map(|(layers, function, error)| (layers.to_owned(), function.to_owned(), error)));
    }

    #[test]
    fn rows_are_read_for_the_kernel_asked_for() {
        use Class::{Failure, Ok, OkWithProbe, Probe, UserSpace};
        let invoke = "ib_uverbs_handler_UVERBS_METHOD_INVOKE_WRITE";
        check("6.1", "open_device(ok)", OkWithProbe, "ok", Some(("core", invoke, 28)));
        check("6.1", "reg_mr(len=0)", Failure, "EINVAL", Some(("core", "ib_umem_get", 22)));
        check("7.3", "reg_mr(len=0)", Failure, "EINVAL", Some(("core", "__ib_umem_get_va", 22)));
        check("6.12", "reg_mr(ON_DEMAND)", Failure, "EOPNOTSUPP", Some(("core", "ib_uverbs_reg_mr", 95)));
        check("7.3", "reg_mr(ON_DEMAND)", Ok, "ok", None);
        check("6.12", "create_cq(cqe=0)", Failure, "EINVAL", Some(("core/driver", "rxe_cq_chk_attr", 22)));
        check("6.12", "create_flow", UserSpace, "EOPNOTSUPP", None);
        check("6.12", "raw ioctl(bad cmd)", Probe, "ENOTTY", Some(("syscall", "ib_uverbs_ioctl", 25)));
    }

    #[test]
    fn the_refused_system_calls_error_is_known_even_where_the_call_succeeds() {
        for kernel in KERNELS {
            let all = expected(FAILURES, LAYERS, kernel).unwrap();
            assert_eq!(all[0].refused_with.as_deref(), Some("ENOSPC"));
            for row in &all[1..] {
                let refused = matches!(row.class, Class::Failure | Class::Probe);
                assert_eq!(row.refused_with.as_deref(), refused.then_some(&*row.errno), "{}", row.recipe);
            }
        }
    }

    #[test]
    fn soft_iwarp_makes_the_same_calls() {
        for kernel in KERNELS {
            let names = |failures, layers| -> Vec<String> {
                expected(failures, layers, kernel).unwrap().into_iter().map(|call| call.recipe).collect()
            };
            assert_eq!(names(SIW_FAILURES, SIW_LAYERS), names(FAILURES, LAYERS));
        }
    }

    #[track_caller]
    fn refuse(failures: &str, layers: &str, says: &str) {
        let error = format!("{:#}", expected(failures, layers, "1").unwrap_err());
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn broken_tables_are_refused_with_the_row() {
        let head = "recipe\tverb\tclass\t1 errno\t1 syscalls\n";
        let layers = "recipe\tlayer\t1 innermost\n";
        let good = format!("{head}a\tv\tfailure\tEINVAL\tioctl:EINVAL\n");
        let place = format!("{layers}a\tcore\tf-22\n");
        assert_eq!(expected(&good, &place, "1").unwrap().len(), 1);
        refuse(&good, layers, "a: its class and the table of layers");
        refuse(&good, &format!("{place}b\tcore\tf-22\n"), "b has a layer");
        refuse(&good, &format!("{layers}a\tcore\tf\n"), "function-error");
        refuse(&good, &format!("{layers}a\tcore\n"), "2 cells in place of 3");
        refuse(&good.replace("failure", "fault"), &place, "no such class: fault");
        refuse(&good.replace("ioctl:EINVAL", "ioctl:ok"), &place, "a: its class and its system calls");
        refuse(&format!("{good}a\tv\tok\tok\tioctl:ok\n"), &place, "a stands there twice");
        refuse(&good.replace("1 errno", "2 errno"), &place, "no column 1 errno");
        refuse("", &place, "an empty table");
    }
}
