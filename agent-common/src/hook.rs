//! What an attached hook tells its program about itself: the attach cookie, and the values inside it.

/// Where in the stack a hook stands. Ordered from the outside in.
pub mod layer {
    /// The system call boundary: `ib_uverbs_ioctl`, `ib_uverbs_write`, `ucma_write` and their like.
    pub const SYSCALL: u8 = 0;
    /// `ib_uverbs` handlers and `ib_core` functions, the same for all drivers.
    pub const CORE: u8 = 1;
    /// Functions of one driver: `mlx5_ib_*`, `rxe_*` and their like.
    pub const DRIVER: u8 = 2;
    /// Commands to the device's firmware.
    pub const FIRMWARE: u8 = 3;
}

/// How a function says that it failed.
pub mod error_kind {
    /// A negative errno in the low 32 bits (`int`).
    pub const INT: u8 = 0;
    /// A negative errno in all 64 bits: `long`, `ssize_t`, or a pointer made by `ERR_PTR`.
    pub const LONG: u8 = 1;
}

/// What a hook at the system call boundary has as arguments.
pub mod role {
    /// A function further in: only its result matters.
    pub const INNER: u8 = 0;
    /// `(struct file *, unsigned int cmd, unsigned long arg)` with `arg` a `struct ib_uverbs_ioctl_hdr *`.
    pub const IOCTL: u8 = 1;
    /// `(struct file *, const char *buf, size_t count, …)` of the uverbs device.
    pub const WRITE: u8 = 2;
    /// `(struct file *, const char *buf, size_t count, …)` of the rdma_cm device.
    pub const UCMA: u8 = 3;
    /// `(struct file *, struct vm_area_struct *)`.
    pub const MMAP: u8 = 4;
    /// `(struct inode *, struct file *)`.
    pub const OPEN: u8 = 5;
    /// An inner function that only hands a call on: a refusal of its own is one of the framework's.
    pub const FRAMEWORK: u8 = 6;
    /// A function that hands device events to their receivers: only changes of GIDs matter, the others have been seen.
    pub const GID_EVENT: u8 = 7;
}

/// The attach cookie: everything a program has to know about the hook it runs for.
///
/// Bits 0..16 the hook's number (the row in the probe table), 16..24 its layer, 24..32 how it fails, 32..40 its role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Cookie(pub u64);

impl Cookie {
    /// Packs a cookie.
    #[must_use]
    pub const fn new(hook: u16, layer: u8, error_kind: u8, role: u8) -> Self {
        Self(hook as u64 | (layer as u64) << 16 | (error_kind as u64) << 24 | (role as u64) << 32)
    }

    /// The row in the probe table.
    #[must_use]
    pub const fn hook(self) -> u16 {
        self.0 as u16
    }

    /// One of [`layer`].
    #[must_use]
    pub const fn layer(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// One of [`role`].
    #[must_use]
    pub const fn role(self) -> u8 {
        (self.0 >> 32) as u8
    }

    /// The negative errno in `result`, or 0 if the function did not fail.
    ///
    /// The range is the kernel's own (`MAX_ERRNO`, include/linux/err.h).
    #[must_use]
    pub const fn error_of(self, result: u64) -> i32 {
        let value = match (self.0 >> 24) as u8 {
            error_kind::INT => result as u32 as i32 as i64,
            _ => result as i64,
        };
        if value < 0 && value >= -4095 { value as i32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_keeps_its_parts() {
        let cookie = Cookie::new(0xfffe, layer::FIRMWARE, error_kind::LONG, role::OPEN);
        assert_eq!((cookie.hook(), cookie.layer(), cookie.role()), (0xfffe, layer::FIRMWARE, role::OPEN));
    }

    #[test]
    fn errors_are_read_as_the_function_means_them() {
        let int = Cookie::new(1, layer::CORE, error_kind::INT, role::INNER);
        let long = Cookie::new(1, layer::CORE, error_kind::LONG, role::INNER);
        let rows: [(Cookie, u64, i32); 9] = [
            (int, 0, 0),
            (int, 7, 0),
            (int, -22i64 as u64, -22),
            // The upper half of the register is not part of an int.
            (int, 0xffff_ffea, -22),
            (int, 0x1_0000_0000, 0),
            (int, -4096i64 as u64, 0),
            (long, -12i64 as u64, -12),
            (long, 0xffff_ffea, 0),
            (long, 0xffff_8880_1234_5678, 0),
        ];
        for (cookie, result, expected) in rows {
            assert_eq!(cookie.error_of(result), expected, "{result:#x}");
        }
    }
}
