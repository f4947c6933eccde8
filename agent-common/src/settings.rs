//! What user space tells the kernel side. It may change while programs run: a module that is loaded later brings
//! offsets that were unknown before.

/// The one value of the kernel side's map of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// Not 0: every program returns at once.
    pub halt: u32,
    /// 1: take time stamps at entry and keep latency histograms. 0: neither.
    pub latency: u32,
    /// Bytes from a `struct file` to its `f_inode` pointer, from the running kernel's BTF; `u32::MAX` if unknown.
    pub file_inode: u32,
    /// Bytes from a `struct inode` to its `i_rdev`; `u32::MAX` if unknown.
    pub inode_rdev: u32,
    /// Bytes from a `struct ib_device` to its name; `u32::MAX` if unknown.
    pub ib_device_name: u32,
    /// Bytes from a `struct ib_qp` to `qp_num`; `u32::MAX` if unknown.
    pub ib_qp_num: u32,
    /// Field offsets of the record of tracepoint `mlx5:mlx5_cmd`, from its format file; `u32::MAX` if it has none.
    pub mlx5_cmd_opcode: u32,
    /// As above: `op_mod`.
    pub mlx5_cmd_op_mod: u32,
    /// As above: `status`.
    pub mlx5_cmd_status: u32,
    /// As above: `syndrome`.
    pub mlx5_cmd_syndrome: u32,
    /// As above: `err`.
    pub mlx5_cmd_err: u32,
    /// Field offsets of the record of tracepoint `rdma_cma:cm_event_handler`: `event`.
    pub cm_event: u32,
    /// As above: `status`.
    pub cm_status: u32,
    /// As above: `cm_id`.
    pub cm_id: u32,
    /// As above: `srcaddr`.
    pub cm_source: u32,
    /// As above: `dstaddr`.
    pub cm_destination: u32,
}

impl Settings {
    /// The fields in order, as the words they are in memory.
    #[must_use]
    pub const fn words(&self) -> [u32; Self::WORDS] {
        [
            self.halt,
            self.latency,
            self.file_inode,
            self.inode_rdev,
            self.ib_device_name,
            self.ib_qp_num,
            self.mlx5_cmd_opcode,
            self.mlx5_cmd_op_mod,
            self.mlx5_cmd_status,
            self.mlx5_cmd_syndrome,
            self.mlx5_cmd_err,
            self.cm_event,
            self.cm_status,
            self.cm_id,
            self.cm_source,
            self.cm_destination,
        ]
    }
}

/// An offset that is not known on this kernel.
pub const UNKNOWN: u32 = u32::MAX;

impl Settings {
    /// How many 32-bit words the settings are.
    pub const WORDS: usize = 16;

    /// Time stamps on, no offset known.
    pub const DEFAULT: Self = Self {
        halt: 0,
        latency: 1,
        file_inode: UNKNOWN,
        inode_rdev: UNKNOWN,
        ib_device_name: UNKNOWN,
        ib_qp_num: UNKNOWN,
        mlx5_cmd_opcode: UNKNOWN,
        mlx5_cmd_op_mod: UNKNOWN,
        mlx5_cmd_status: UNKNOWN,
        mlx5_cmd_syndrome: UNKNOWN,
        mlx5_cmd_err: UNKNOWN,
        cm_event: UNKNOWN,
        cm_status: UNKNOWN,
        cm_id: UNKNOWN,
        cm_source: UNKNOWN,
        cm_destination: UNKNOWN,
    };
}

const _: () = assert!(size_of::<Settings>() == 4 * Settings::WORDS);
