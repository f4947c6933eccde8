//! Kernel functions of the RDMA stack by name: which module has them, and under which compiler-made name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::drivers;
use super::roots::Roots;

/// Functions kept. The RDMA modules of one host have some ten thousand.
const FUNCTIONS_MAX: usize = 262_144;

/// Bytes of one line of /proc/kallsyms that are looked at. Names end at 512 (KSYM_NAME_LEN).
const LINE_BYTES_MAX: usize = 1024;

/// How names of functions begin that matter when the RDMA stack is built into the kernel and has no module name.
const BUILT_IN_PREFIXES: &[&str] = &[
    "ib_",
    "__ib_",
    "_ib_",
    "rdma_",
    "uverbs_",
    "ucma_",
    "cma_",
    "iw_",
    "mlx5_",
    "mlx4_",
    "rxe_",
    "siw_",
    "bnxt_re_",
    "bnxt_qplib_",
    "irdma_",
    "mana_",
    "efa_",
    "erdma_",
    "hns_roce_",
];

/// Endings that compilers add to a function that they changed (`.isra`, `.constprop`) or cut (`.part`), and the hash
/// of a static function under link-time optimisation (`.llvm`). `.cold` holds the unlikely rest of a function that
/// is there under its own name, so it is no place for a hook.
const ENDINGS: &[(&str, u8)] = &[("llvm", 1), ("constprop", 2), ("isra", 2), ("part", 8)];

/// The functions of the RDMA stack in the running kernel.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// By the name in the source.
    functions: HashMap<Box<str>, Vec<Function>>,
    len: usize,
    /// Whether the kernel's list of traceable functions was read.
    traceable_known: bool,
}

#[derive(Debug)]
struct Function {
    /// None: built in.
    module: Option<Box<str>>,
    name: Box<str>,
    /// 0 is the name itself; the more a compiler did, the higher.
    rank: u8,
    /// How many functions of this module have this very name: static functions of several files.
    count: u32,
    traceable: bool,
}

/// A function that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolved<'a> {
    /// The module, or none if it is built in.
    pub(crate) module: Option<&'a str>,
    /// The name to hook, such as `create_qp.isra.0`.
    pub(crate) name: &'a str,
    /// Whether ftrace, and with it fexit, can take it. Absent if the kernel's list cannot be read.
    pub(crate) traceable: Option<bool>,
}

impl Resolved<'_> {
    /// As probes are written: `module:function`, or the function alone if it is built in.
    pub(crate) fn probe_target(&self) -> String {
        match self.module {
            Some(module) => format!("{module}:{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Why a name leads to no function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// No function has this name, with or without endings.
    #[error("no kernel function {0}")]
    Absent(String),
    /// Several have it, and the hint does not decide.
    #[error("several kernel functions {name}: in {}", .places.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The modules that have it; `vmlinux` for built-in functions.
        places: Vec<String>,
    },
}

impl Symbols {
    /// Reads /proc/kallsyms, and what ftrace can trace if that is readable.
    ///
    /// # Errors
    ///
    /// Only if /proc/kallsyms cannot be read.
    pub(crate) fn read(roots: &Roots, tracefs: Option<&Path>) -> io::Result<Self> {
        let open = |path: &Path| File::open(path).map(|file| BufReader::with_capacity(1 << 16, file));
        let mut symbols = Self::parse(open(&roots.procfs.join("kallsyms"))?)?;
        if let Some(tracefs) = tracefs
            && let Ok(list) = open(&tracefs.join("available_filter_functions"))
        {
            symbols.mark_traceable(list)?;
        }
        Ok(symbols)
    }

    /// Keeps the functions of RDMA modules, and built-in ones whose names begin like theirs. A line reads
    /// `address type name`, with `\t[module]` for a function of a module.
    pub(crate) fn parse(mut kallsyms: impl BufRead) -> io::Result<Self> {
        let mut symbols = Self::default();
        for_each_line(&mut kallsyms, |line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(kind), Some(name)) = (fields.next(), fields.next()) else {
                return;
            };
            let module = fields.next().and_then(unbracketed);
            if matches!(kind, "t" | "T" | "w" | "W") && is_kept(name, module) {
                symbols.add(name, module);
            }
        })?;
        Ok(symbols)
    }

    fn add(&mut self, name: &str, module: Option<&str>) {
        let Some((base, rank)) = base_and_rank(name) else {
            return;
        };
        if self.len >= FUNCTIONS_MAX {
            return;
        }
        let functions = self.functions.entry(base.into()).or_default();
        if let Some(same) = functions.iter_mut().find(|f| *f.name == *name && f.module.as_deref() == module) {
            same.count = same.count.saturating_add(1);
            return;
        }
        self.len += 1;
        functions.push(Function { module: module.map(Box::from), name: name.into(), rank, count: 1, traceable: false });
    }

    /// Takes the lines `name` and `name [module]` of `available_filter_functions`.
    pub(crate) fn mark_traceable(&mut self, mut list: impl BufRead) -> io::Result<()> {
        for_each_line(&mut list, |line| {
            let mut fields = line.split_ascii_whitespace();
            let name = fields.next().unwrap_or_default();
            let module = fields.next().and_then(unbracketed);
            let base = base_and_rank(name).map_or(name, |(base, _)| base);
            let functions = self.functions.get_mut(base).into_iter().flatten();
            let mut same = functions.filter(|f| *f.name == *name && f.module.as_deref() == module);
            if let Some(function) = same.next() {
                function.traceable = true;
            }
        })?;
        self.traceable_known = true;
        Ok(())
    }

    /// How many functions are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The function with a name in the source. A function of the hinted module wins, with endings too, over the same
    /// name elsewhere; functions move between modules, so without one in the hinted module any other serves that
    /// is the only one. The least changed name wins.
    ///
    /// # Errors
    ///
    /// The name is absent, or several modules have it and the hint does not decide.
    pub(crate) fn resolve(&self, name: &str, module_hint: Option<&str>) -> Result<Resolved<'_>, Unresolved> {
        let absent = || Unresolved::Absent(name.to_owned());
        let all = self.functions.get(name).ok_or_else(absent)?;
        let hinted: Vec<&Function> =
            all.iter().filter(|f| module_hint.is_some() && f.module.as_deref() == module_hint).collect();
        let pool = if hinted.is_empty() { all.iter().collect() } else { hinted };
        let rank = pool.iter().map(|f| f.rank).min().ok_or_else(absent)?;
        let best: Vec<&Function> = pool.into_iter().filter(|f| f.rank == rank).collect();
        match best.as_slice() {
            [only] if only.count == 1 => Ok(self.resolved(only)),
            several => Err(Unresolved::Ambiguous {
                name: name.to_owned(),
                places: several.iter().flat_map(|f| (0..f.count.min(8)).map(|_| place(f))).collect(),
            }),
        }
    }

    /// Every function of a module, in no order.
    pub(crate) fn of_module<'a>(&'a self, module: &'a str) -> impl Iterator<Item = Resolved<'a>> {
        let functions = self.functions.values().flatten();
        functions.filter(move |f| f.module.as_deref() == Some(module)).map(|f| self.resolved(f))
    }

    /// Every function, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Resolved<'_>> {
        self.functions.values().flatten().map(|function| self.resolved(function))
    }

    fn resolved<'a>(&'a self, function: &'a Function) -> Resolved<'a> {
        Resolved {
            module: function.module.as_deref(),
            name: &function.name,
            traceable: self.traceable_known.then_some(function.traceable),
        }
    }
}

fn place(function: &Function) -> String {
    function.module.as_deref().unwrap_or("vmlinux").to_owned()
}

fn unbracketed(text: &str) -> Option<&str> {
    text.strip_prefix('[')?.strip_suffix(']')
}

fn is_kept(name: &str, module: Option<&str>) -> bool {
    match module {
        // `__pfx_` marks the padding in front of a function, not a function.
        _ if name.starts_with("__pfx_") => false,
        Some(module) => drivers::is_rdma_module(module),
        None => BUILT_IN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)),
    }
}

/// The name in the source and how far the compiler's name is from it. None for endings that are no place for a hook.
fn base_and_rank(name: &str) -> Option<(&str, u8)> {
    let mut parts = name.split('.');
    let base = parts.next().filter(|base| !base.is_empty())?;
    let mut rank = 0u8;
    while let Some(ending) = parts.next() {
        let (_, weight) = ENDINGS.iter().find(|(known, _)| *known == ending)?;
        parts.next().filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))?;
        rank = rank.saturating_add(*weight);
    }
    Some((base, rank))
}

/// Walks lines without keeping the file; a line that is too long or no UTF-8 is left out.
fn for_each_line(input: &mut impl BufRead, mut line: impl FnMut(&str)) -> io::Result<()> {
    let mut bytes = Vec::new();
    while input.read_until(b'\n', &mut bytes)? > 0 {
        if bytes.len() <= LINE_BYTES_MAX
            && let Ok(text) = str::from_utf8(&bytes)
        {
            line(text);
        }
        bytes.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
0000000000000000 T ib_register_device
0000000000000000 t __pfx_ib_uverbs_ioctl\t[ib_uverbs]
0000000000000000 t ib_uverbs_ioctl\t[ib_uverbs]
0000000000000000 t ib_uverbs_ioctl.cold\t[ib_uverbs]
0000000000000000 t create_qp\t[ib_uverbs]
0000000000000000 t create_qp.part.0\t[ib_core]
0000000000000000 t create_qp.isra.0.constprop.1\t[mlx5_ib]
0000000000000000 t create_qp.constprop.0\t[mlx5_ib]
0000000000000000 t modify.part.0.isra.0\t[ib_core]
0000000000000000 t twice\t[ib_core]
0000000000000000 t twice\t[ib_core]
0000000000000000 t both\t[ib_core]
0000000000000000 t both\t[rdma_cm]
0000000000000000 t lto.llvm.1234567\t[rdma_rxe]
0000000000000000 d ib_uverbs_data\t[ib_uverbs]
0000000000000000 t ext4_open\t[ext4]
0000000000000000 t bpf_prog_6deef7357e7b4530\t[bpf]
odd
0000000000000000 t
";

    fn symbols() -> Symbols {
        Symbols::parse(KALLSYMS.as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(name: &str, hint: Option<&str>, expected: &str) {
        let symbols = symbols();
        let found = match symbols.resolve(name, hint) {
            Ok(function) => function.probe_target(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_is_found_where_it_is() {
        check("ib_uverbs_ioctl", Some("ib_uverbs"), "ib_uverbs:ib_uverbs_ioctl");
        check("ib_uverbs_ioctl", None, "ib_uverbs:ib_uverbs_ioctl");
        check("ib_register_device", Some("ib_core"), "ib_register_device");
    }

    #[test]
    fn a_function_that_moved_to_another_module_is_found() {
        check("ib_uverbs_ioctl", Some("ib_core"), "ib_uverbs:ib_uverbs_ioctl");
        check("both", Some("rdma_cm"), "rdma_cm:both");
    }

    #[test]
    fn endings_of_compilers_are_tried_least_changed_first() {
        check("create_qp", Some("mlx5_ib"), "mlx5_ib:create_qp.constprop.0");
        check("create_qp", Some("ib_core"), "ib_core:create_qp.part.0");
        check("create_qp", None, "ib_uverbs:create_qp");
        check("modify", None, "ib_core:modify.part.0.isra.0");
        check("lto", None, "rdma_rxe:lto.llvm.1234567");
    }

    #[test]
    fn what_is_not_one_function_says_why() {
        check("both", None, "several kernel functions both: in ib_core, rdma_cm");
        check("both", Some("siw"), "several kernel functions both: in ib_core, rdma_cm");
        check("twice", Some("ib_core"), "several kernel functions twice: in ib_core, ib_core");
        check("_stext", None, "no kernel function _stext");
        check("ext4_open", None, "no kernel function ext4_open");
        check("ib_uverbs_data", None, "no kernel function ib_uverbs_data");
        check("", None, "no kernel function ");
    }

    #[test]
    fn names_are_split_into_source_and_endings() {
        for (name, expected) in [
            ("f", Some(("f", 0))),
            ("f.isra.0", Some(("f", 2))),
            ("f.part.0.constprop.12", Some(("f", 10))),
            ("f.cold", None),
            ("f.isra.0.cold", None),
            ("f.isra", None),
            ("f.isra.x", None),
            (".isra.0", None),
        ] {
            assert_eq!(base_and_rank(name), expected, "{name}");
        }
    }

    #[test]
    fn traceable_is_unknown_until_the_list_is_read() {
        let mut symbols = symbols();
        assert_eq!(symbols.resolve("ib_uverbs_ioctl", None).unwrap().traceable, None);
        let list = "ib_uverbs_ioctl [ib_uverbs]\ncreate_qp.constprop.0 [mlx5_ib]\nib_register_device [ib_core]\n\n";
        symbols.mark_traceable(list.as_bytes()).unwrap();
        for (name, hint, expected) in [
            ("ib_uverbs_ioctl", None, Some(true)),
            ("create_qp", Some("mlx5_ib"), Some(true)),
            ("create_qp", None, Some(false)),
            ("ib_register_device", None, Some(false)),
        ] {
            assert_eq!(symbols.resolve(name, hint).unwrap().traceable, expected, "{name}");
        }
    }

    #[test]
    fn functions_of_a_module_are_listed_and_counted() {
        let symbols = symbols();
        let mut names: Vec<&str> = symbols.of_module("ib_core").map(|function| function.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["both", "create_qp.part.0", "modify.part.0.isra.0", "twice"]);
        assert_eq!(symbols.len(), 11);
    }

    #[test]
    fn odd_bytes_cost_only_their_line() {
        let mut text = b"0 t \xff\xfe\t[ib_core]\n".to_vec();
        text.extend(format!("0 t {}\t[ib_core]\n", "x".repeat(LINE_BYTES_MAX)).bytes());
        text.extend(b"0 t last\t[ib_core]");
        let symbols = Symbols::parse(text.as_slice()).unwrap();
        assert_eq!(symbols.len(), 1);
        assert!(symbols.resolve("last", None).is_ok());
    }
}
