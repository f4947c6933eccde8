//! The types of a function's result and arguments as C spells them.

use super::{
    Btf, DEPTH, KIND_CONST, KIND_ENUM, KIND_ENUM64, KIND_FUNC_PROTO, KIND_PTR, KIND_RESTRICT, KIND_STRUCT,
    KIND_TYPE_TAG, KIND_UNION, KIND_VOLATILE, kind_of, members_of, word,
};

/// What a function takes and gives back. Types are spelt without qualifiers and with the stars at their end:
/// `int`, `struct ib_qp*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prototype {
    /// The type of the result.
    pub(crate) returns: String,
    /// The types of the arguments.
    pub(crate) arguments: Vec<String>,
}

impl Btf {
    /// The types of a function of this object, by its id.
    pub(crate) fn prototype(&self, base: Option<&Self>, function: u32) -> Option<Prototype> {
        let (object, at) = self.record(base, function)?;
        let (object, at) = object.record(base, word(&object.data, at + 8)?)?;
        let info = word(&object.data, at + 4)?;
        if kind_of(info) != KIND_FUNC_PROTO {
            return None;
        }
        let returns = self.spelling(base, word(&object.data, at + 8)?)?;
        let argument = |index: usize| self.spelling(base, word(&object.data, at + 12 + 8 * index + 4)?);
        let arguments = (0..usize::from(members_of(info))).map(argument).collect::<Option<Vec<_>>>()?;
        Some(Prototype { returns, arguments })
    }

    /// A type's name; pointers get a star each, what has no name of its own (a pointer to a function) gets `fn`.
    fn spelling(&self, base: Option<&Self>, mut id: u32) -> Option<String> {
        let mut stars = 0;
        for _ in 0..DEPTH {
            if id == 0 {
                return Some(format!("void{}", "*".repeat(stars)));
            }
            let (object, at) = self.record(base, id)?;
            let name = object.string(base, word(&object.data, at)?)?;
            let before = match kind_of(word(&object.data, at + 4)?) {
                KIND_PTR | KIND_CONST | KIND_VOLATILE | KIND_RESTRICT | KIND_TYPE_TAG => {
                    stars += usize::from(kind_of(word(&object.data, at + 4)?) == KIND_PTR);
                    id = word(&object.data, at + 8)?;
                    continue;
                }
                KIND_STRUCT => "struct ",
                KIND_UNION => "union ",
                KIND_ENUM | KIND_ENUM64 => "enum ",
                KIND_FUNC_PROTO => "fn",
                _ => "",
            };
            return Some(format!("{before}{name}{}", "*".repeat(stars)));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn this_kernel_s_functions_are_spelt_as_in_its_source() {
        let Ok(btf) = Btf::vmlinux(Path::new("/sys")) else {
            eprintln!("skipped: this kernel has no BTF");
            return;
        };
        // fs/read_write.c: ssize_t vfs_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
        let read = btf.prototype(None, btf.function("vfs_read").expect("a function")).expect("its types");
        assert_eq!(read.returns, "ssize_t");
        assert_eq!(read.arguments, ["struct file*", "char*", "size_t", "loff_t*"]);
    }
}
