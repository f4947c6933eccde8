//! Firmware commands that fail, from the driver's own tracepoint.

use agent_common::hook::Cookie;
use agent_common::record::{Firmware, flag};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::macros::tracepoint;
use aya_ebpf::programs::TracePointContext;

use super::chain;
use crate::{maps, read};

/// `mlx5:mlx5_cmd`: a firmware command has been answered (drivers/net/ethernet/mellanox/mlx5/core/diag/cmd_tracepoint.h).
#[tracepoint]
pub(crate) fn mlx5_command(ctx: TracePointContext) -> u32 {
    let Some(settings) = maps::settings() else { return 0 };
    let base = ctx.as_ptr() as u64;
    let error = read::kernel::<i32>(base, settings.mlx5_cmd_err).unwrap_or(0);
    if error == 0 {
        return 0;
    }
    let Some(call) = maps::call(super::thread()) else { return 0 };
    // SAFETY: the map gave the pointer, and only this thread writes its own record.
    let call = unsafe { &mut *call };
    call.firmware = Firmware {
        opcode: u32::from(read::kernel::<u16>(base, settings.mlx5_cmd_opcode).unwrap_or(0)),
        op_mod: u32::from(read::kernel::<u16>(base, settings.mlx5_cmd_op_mod).unwrap_or(0)),
        status: u32::from(read::kernel::<u8>(base, settings.mlx5_cmd_status).unwrap_or(0)),
        syndrome: read::kernel::<u32>(base, settings.mlx5_cmd_syndrome).unwrap_or(0),
    };
    call.flags |= flag::FIRMWARE;
    let cookie: Cookie = super::cookie(&ctx);
    // A firmware command is further in than any function, whatever its place on the stack.
    chain::push(call, cookie, error, 0, 0);
    0
}
