//! The kernel side's object: its maps, made once, and its programs, loaded once for each hook.
//!
//! aya makes the maps and reads the object. The programs are loaded here, since a hook's program needs a target in a
//! module's BTF, which aya does not offer, and an account of its own.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use anyhow::{Context as _, bail};
use aya::maps::Map;
use aya::{Ebpf, EbpfLoader};
use aya_obj::generated::bpf_insn;

use super::btf::Btf;
use super::sys::{self, Kind, Tracing};
use crate::host::roots::Roots;

/// The kernel side as it was built with this program; empty if it was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("FABRICSCOPE_OBJECT"));

/// The loaded object.
#[derive(Debug)]
pub(crate) struct Object {
    ebpf: Ebpf,
    /// The programs with their references to maps and functions filled in.
    code: aya_obj::Object,
    license: CString,
}

impl Object {
    /// Makes the maps.
    ///
    /// # Errors
    ///
    /// If this program was built without the kernel side, or the kernel refuses a map.
    pub(crate) fn load() -> anyhow::Result<Self> {
        if OBJECT.is_empty() {
            bail!("this fabricscope was built without its kernel side; run `cargo xtask setup` and build it again");
        }
        let ebpf = EbpfLoader::new()
            .load(OBJECT)
            .context("making the BPF maps (this needs root, or CAP_BPF and CAP_PERFMON)")?;
        let mut code = aya_obj::Object::parse(OBJECT).context("reading the kernel side's object")?;
        let text: HashSet<usize> = code.functions.keys().map(|(section, _)| *section).collect();
        let maps = code.maps.clone();
        let fds = maps.iter().filter_map(|(name, map)| Some((name.as_str(), fd(ebpf.map(name)?)?, map)));
        code.relocate_maps(fds, &text).context("binding the programs to the maps")?;
        code.relocate_calls(&text).context("binding the programs to their functions")?;
        let license = code.license.clone();
        Ok(Self { ebpf, code, license })
    }

    /// Loads a program of the object.
    ///
    /// # Errors
    ///
    /// If the object has no such program, or the kernel refuses it.
    pub(crate) fn program(&self, program: &str, name: &str, kind: Kind<'_>) -> anyhow::Result<OwnedFd> {
        let instructions = self.instructions(program)?;
        Ok(sys::load_program(name, instructions, &self.license, kind)?)
    }

    fn instructions(&self, program: &str) -> anyhow::Result<&[bpf_insn]> {
        let found = self.code.programs.get(program);
        let function = found.and_then(|program| self.code.functions.get(&program.function_key()));
        Ok(&function.with_context(|| format!("the kernel side has no program {program}"))?.instructions)
    }

    /// A map by name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) fn map(&self, name: &str) -> anyhow::Result<&Map> {
        self.ebpf.map(name).with_context(|| format!("the kernel side has no map {name}"))
    }

    /// A map by name, to be written.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) fn map_mut(&mut self, name: &str) -> anyhow::Result<&mut Map> {
        self.ebpf.map_mut(name).with_context(|| format!("the kernel side has no map {name}"))
    }

    /// Takes a map out for the one who reads it.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) fn take_map(&mut self, name: &str) -> anyhow::Result<Map> {
        self.ebpf.take_map(name).with_context(|| format!("the kernel side has no map {name}"))
    }
}

/// Loads and attaches a program to a function that every kernel has, and detaches it again: whether this kernel takes
/// fentry and fexit cannot be told otherwise.
///
/// # Errors
///
/// Why it does not.
pub(crate) fn try_fexit(roots: &Roots) -> anyhow::Result<()> {
    /// Any function of the kernel itself with an argument: it is attached to for an instant only.
    const FUNCTIONS: [&str; 2] = ["do_sys_openat2", "vfs_read"];
    let vmlinux = Btf::vmlinux(&roots.sysfs)?;
    let function = FUNCTIONS.iter().find_map(|name| vmlinux.function(name)).context("no function to try it on")?;
    let kind = Kind::Tracing { at: Tracing::Entry, function, object: None };
    let program = Object::load()?.program("device_event_fentry", "trial", kind).context("loading a program")?;
    sys::link_tracing(program.as_fd(), Tracing::Entry, 0).context("attaching a program")?;
    Ok(())
}

/// The descriptor of a map of one of the types in use.
fn fd(map: &Map) -> Option<i32> {
    match map {
        Map::Array(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::PerCpuArray(data)
        | Map::PerCpuHashMap(data)
        | Map::RingBuf(data) => Some(data.fd().as_fd().as_raw_fd()),
        _ => None,
    }
}

/// The object's maps: name, and bytes of key and value and number of entries. Empty if built without the kernel side.
#[cfg(test)]
pub(crate) fn map_shapes() -> Vec<(String, [usize; 3])> {
    let object = aya_obj::Object::parse(OBJECT).ok();
    let maps = object.iter().flat_map(|object| &object.maps);
    let shape = |map: &aya_obj::Map| [map.key_size(), map.value_size(), map.max_entries()].map(|word| word as usize);
    maps.filter(|(name, _)| !name.starts_with('.')).map(|(name, map)| (name.clone(), shape(map))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::probes::Hook;

    #[test]
    fn every_program_of_the_object_is_in_the_probe_table_and_the_other_way_round() {
        if OBJECT.is_empty() {
            eprintln!("skipped: built without the kernel side");
            return;
        }
        let object = aya_obj::Object::parse(OBJECT).expect("the object is one");
        let built: BTreeSet<&str> = object.programs.keys().map(String::as_str).collect();
        let named: BTreeSet<&str> = Hook::all().flat_map(|(_, hook)| crate::kernel::program_names(hook)).collect();
        assert_eq!(built, named);
    }
}
