//! Kernel type information: functions by name and structure members by path, of vmlinux and of modules.
//!
//! The format is Documentation/bpf/btf.rst. A module's BTF continues vmlinux's: its type ids and string offsets begin
//! where those of vmlinux end. Everything is read with checks; a broken file gives an error or no answer.

mod prototype;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};

const MAGIC: u16 = 0xeb9f;
const KIND_INT: u8 = 1;
const KIND_PTR: u8 = 2;
const KIND_ARRAY: u8 = 3;
const KIND_STRUCT: u8 = 4;
const KIND_UNION: u8 = 5;
const KIND_ENUM: u8 = 6;
const KIND_TYPEDEF: u8 = 8;
const KIND_VOLATILE: u8 = 9;
const KIND_CONST: u8 = 10;
const KIND_RESTRICT: u8 = 11;
const KIND_FUNC: u8 = 12;
const KIND_FUNC_PROTO: u8 = 13;
const KIND_VAR: u8 = 14;
const KIND_DATASEC: u8 = 15;
const KIND_DECL_TAG: u8 = 17;
const KIND_TYPE_TAG: u8 = 18;
const KIND_ENUM64: u8 = 19;
/// How many typedefs and anonymous members deep a look-up goes.
const DEPTH: u32 = 16;

/// What a function gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// Nothing.
    Void,
    /// An integer of so many bytes (an enum or bool too).
    Integer(u32),
    /// A pointer.
    Pointer,
    /// Something else.
    Other,
}

/// The type information of vmlinux or of one module.
#[derive(Debug)]
pub(crate) struct Btf {
    data: Vec<u8>,
    /// Where each type starts in `data`; index 0 is the first type of this object.
    types: Vec<u32>,
    strings: std::ops::Range<usize>,
    /// Types and string bytes of the object this one continues.
    base_types: u32,
    base_strings: u32,
    functions: HashMap<String, u32>,
}

impl Btf {
    /// Reads vmlinux's type information from its file in sysfs.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not BTF.
    pub(crate) fn vmlinux(sysfs: &Path) -> anyhow::Result<Self> {
        let path = sysfs.join("kernel/btf/vmlinux");
        let data = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(data, None).with_context(|| format!("in {}", path.display()))
    }

    /// Reads a module's type information.
    ///
    /// # Errors
    ///
    /// If the module has none, or it cannot be read.
    pub(crate) fn module(sysfs: &Path, module: &str, base: &Self) -> anyhow::Result<Self> {
        let path = sysfs.join("kernel/btf").join(module);
        let data = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(data, Some(base)).with_context(|| format!("in {}", path.display()))
    }

    fn parse(data: Vec<u8>, base: Option<&Self>) -> anyhow::Result<Self> {
        if half(&data, 0) != Some(MAGIC) {
            bail!("not BTF of this machine's byte order");
        }
        let header = word(&data, 4).context("no header")?;
        let part = |at: usize| -> anyhow::Result<std::ops::Range<usize>> {
            let (offset, length) = word(&data, at).zip(word(&data, at + 4)).context("no header")?;
            let start = header.checked_add(offset).context("bad offset")? as usize;
            let end = start.checked_add(length as usize).filter(|end| *end <= data.len()).context("cut short")?;
            Ok(start..end)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut btf = Self {
            types: Vec::new(),
            strings,
            // Id 0 is void and has no record.
            base_types: base.map_or(1, Self::next_type),
            base_strings: base.map_or(0, Self::next_string),
            functions: HashMap::new(),
            data,
        };
        let mut at = types.start;
        while at < types.end {
            btf.types.push(u32::try_from(at).context("too big")?);
            let info = word(&btf.data, at + 4).context("cut short")?;
            at += 12 + extra(info).with_context(|| format!("unknown kind {}", kind_of(info)))?;
        }
        btf.functions = btf.collect_functions();
        Ok(btf)
    }

    fn collect_functions(&self) -> HashMap<String, u32> {
        let ids = (0u32..).map(|index| self.base_types + index);
        let functions = ids
            .zip(&self.types)
            .filter(|(_, at)| word(&self.data, **at as usize + 4).is_some_and(|info| kind_of(info) == KIND_FUNC));
        functions
            .filter_map(|(id, at)| {
                let name = word(&self.data, *at as usize)?;
                Some((self.own_string(name)?.to_owned(), id))
            })
            .collect()
    }

    fn next_type(&self) -> u32 {
        self.base_types + u32::try_from(self.types.len()).unwrap_or(0)
    }

    fn next_string(&self) -> u32 {
        self.base_strings + u32::try_from(self.strings.len()).unwrap_or(0)
    }

    fn own_string(&self, offset: u32) -> Option<&str> {
        let start = self.strings.start + offset.checked_sub(self.base_strings)? as usize;
        let bytes = self.data.get(start..self.strings.end)?;
        std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
    }

    fn string<'a>(&'a self, base: Option<&'a Self>, offset: u32) -> Option<&'a str> {
        self.own_string(offset).or_else(|| base?.own_string(offset))
    }

    /// The record of a type: the object it stands in and its position there.
    fn record<'a>(&'a self, base: Option<&'a Self>, id: u32) -> Option<(&'a Self, usize)> {
        match id.checked_sub(self.base_types) {
            Some(index) => Some((self, *self.types.get(index as usize)? as usize)),
            None => base?.record(None, id),
        }
    }

    /// The id of a function of this object.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    /// What a function gives back and how many arguments it has.
    pub(crate) fn signature(&self, base: Option<&Self>, function: u32) -> Option<(Returns, u16)> {
        let (object, at) = self.record(base, function)?;
        let prototype = word(&object.data, at + 8)?;
        let (object, at) = self.record(base, prototype)?;
        let info = word(&object.data, at + 4)?;
        if kind_of(info) != KIND_FUNC_PROTO {
            return None;
        }
        let returns = self.returns(base, word(&object.data, at + 8)?)?;
        Some((returns, members_of(info)))
    }

    fn returns(&self, base: Option<&Self>, mut id: u32) -> Option<Returns> {
        for _ in 0..DEPTH {
            if id == 0 {
                return Some(Returns::Void);
            }
            let (object, at) = self.record(base, id)?;
            let kind = kind_of(word(&object.data, at + 4)?);
            let size_or_type = word(&object.data, at + 8)?;
            match kind {
                KIND_INT | KIND_ENUM | KIND_ENUM64 => return Some(Returns::Integer(size_or_type)),
                KIND_PTR => return Some(Returns::Pointer),
                KIND_TYPEDEF | KIND_CONST | KIND_VOLATILE | KIND_RESTRICT | KIND_TYPE_TAG => id = size_or_type,
                _ => return Some(Returns::Other),
            }
        }
        None
    }

    /// Bytes from the start of a structure to a member, looking into anonymous members too.
    pub(crate) fn offset(&self, base: Option<&Self>, structure: &str, member: &str) -> Option<u32> {
        // Its own first: what a module is asked for stands there most often, and vmlinux has a hundred thousand types.
        let (own, last) = (self.base_types, self.next_type());
        (own..last).chain(1..own).find_map(|id| {
            let (object, at) = self.record(base, id)?;
            let info = word(&object.data, at + 4)?;
            if kind_of(info) != KIND_STRUCT || members_of(info) == 0 {
                return None;
            }
            let name = word(&object.data, at)?;
            if self.string(base, name)? != structure {
                return None;
            }
            self.member(base, id, member, DEPTH)
        })
    }

    fn member(&self, base: Option<&Self>, id: u32, member: &str, depth: u32) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        let (object, at) = self.record(base, id)?;
        let info = word(&object.data, at + 4)?;
        if !matches!(kind_of(info), KIND_STRUCT | KIND_UNION) {
            return None;
        }
        (0..usize::from(members_of(info))).find_map(|index| {
            let at = at + 12 + 12 * index;
            let (name, kind, bits) =
                (word(&object.data, at)?, word(&object.data, at + 4)?, word(&object.data, at + 8)?);
            // With bit fields the upper byte is the field's width.
            let bytes = if info >> 31 == 1 { bits & 0x00ff_ffff } else { bits } / 8;
            match self.string(base, name)? {
                found if found == member => Some(bytes),
                "" => Some(bytes + self.member(base, kind, member, depth)?),
                _ => None,
            }
        })
    }
}

fn half(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(data.get(at..at + 2)?.try_into().ok()?))
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn kind_of(info: u32) -> u8 {
    (info >> 24) as u8 & 0x1f
}

fn members_of(info: u32) -> u16 {
    info as u16
}

/// Bytes after the twelve that every record has.
fn extra(info: u32) -> Option<usize> {
    let members = usize::from(members_of(info));
    Some(match kind_of(info) {
        KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
        KIND_ARRAY => 12,
        KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * members,
        KIND_ENUM | KIND_FUNC_PROTO => 8 * members,
        KIND_PTR | 7 | KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_FUNC | 16 | KIND_TYPE_TAG => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds BTF: records as words, strings as one text.
    fn build(records: &[u32], strings: &[u8]) -> Vec<u8> {
        let types: Vec<u8> = records.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        let lengths = [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        data.extend(lengths.iter().flat_map(|word| word.to_ne_bytes()));
        data.extend(types);
        data.extend(strings);
        data
    }

    fn info(kind: u8, members: u32) -> u32 {
        u32::from(kind) << 24 | members
    }

    #[test]
    fn members_are_found_in_base_and_module_and_inside_anonymous_ones() {
        // strings: 1 int, 5 file, 10 f_inode
        let base = build(
            &[
                1,
                info(KIND_INT, 0),
                4,
                32, // 1: int
                0,
                info(KIND_UNION, 1),
                8,
                10,
                1,
                64, // 2: union { int f_inode at 64 bits }
                5,
                info(KIND_STRUCT, 1),
                16,
                0,
                2,
                128, // 3: struct file { union at 128 bits }
            ],
            b"\0int\0file\0f_inode\0",
        );
        let base = Btf::parse(base, None).expect("base");
        assert_eq!(base.offset(None, "file", "f_inode"), Some(24));
        assert_eq!(base.offset(None, "file", "nothing"), None);
        assert_eq!(base.offset(None, "nothing", "f_inode"), None);

        // Strings of the module go on at 18: 18 "f", 20 "ib_qp", 26 "qp_num"
        let module = build(
            &[
                20,
                info(KIND_STRUCT, 1),
                8,
                26,
                1,
                32, // 4: struct ib_qp { int qp_num }
                0,
                info(KIND_FUNC_PROTO, 1),
                1,
                0,
                1, // 5: int (int)
                18,
                info(KIND_FUNC, 0),
                5, // 6: f
                0,
                info(KIND_PTR, 0),
                3, // 7: struct file *
            ],
            b"f\0ib_qp\0qp_num\0",
        );
        let module = Btf::parse(module, Some(&base)).expect("module");
        assert_eq!(module.offset(Some(&base), "ib_qp", "qp_num"), Some(4));
        assert_eq!(module.offset(Some(&base), "file", "f_inode"), Some(24));
        assert_eq!(module.function("f"), Some(6));
        assert_eq!(module.signature(Some(&base), 6), Some((Returns::Integer(4), 1)));
    }

    #[test]
    fn broken_files_are_errors() {
        let good = build(&[1, info(KIND_INT, 0), 4, 32], b"\0int\0");
        assert!(Btf::parse(good.clone(), None).is_ok());
        for end in 0..good.len() {
            let _ = Btf::parse(good[..end].to_vec(), None);
        }
        assert!(Btf::parse(b"ELF".to_vec(), None).is_err());
        assert!(Btf::parse(build(&[1, info(25, 0), 4], b"\0int\0"), None).is_err());
    }

    #[test]
    fn this_kernel_s_own_type_information_is_read() {
        let Ok(btf) = Btf::vmlinux(Path::new("/sys")) else {
            eprintln!("skipped: this kernel has no BTF");
            return;
        };
        let inode = btf.offset(None, "inode", "i_rdev").expect("every kernel's inodes have a device number");
        assert!(inode > 0 && inode < 1024);
        assert!(btf.offset(None, "file", "f_inode").is_some());
        let open = btf.function("do_sys_openat2").or_else(|| btf.function("vfs_read")).expect("a function");
        let (returns, arguments) = btf.signature(None, open).expect("its signature");
        assert!(matches!(returns, Returns::Integer(_)) && arguments >= 3);
    }
}
