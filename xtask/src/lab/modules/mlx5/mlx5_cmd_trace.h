/* SPDX-License-Identifier: GPL-2.0 */
/* The tracepoint mlx5:mlx5_cmd, with the fields and types that the real driver's format file shows on 6.1 to 7.3. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mlx5

#if !defined(LAB_MLX5_CMD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LAB_MLX5_CMD_TRACE_H

#include <linux/tracepoint.h>
#include <linux/version.h>

/* The macro lost its second argument in 6.10. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define lab_assign_str(field, value) __assign_str(field, value)
#else
#define lab_assign_str(field, value) __assign_str(field)
#endif

TRACE_EVENT(mlx5_cmd,
	TP_PROTO(const char *command_str, u16 opcode, u16 op_mod, const char *status_str, u8 status, u32 syndrome,
		 int err),
	TP_ARGS(command_str, opcode, op_mod, status_str, status, syndrome, err),
	TP_STRUCT__entry(
		__string(command_str, command_str)
		__field(u16, opcode)
		__field(u16, op_mod)
		__string(status_str, status_str)
		__field(u8, status)
		__field(u32, syndrome)
		__field(int, err)
	),
	TP_fast_assign(
		lab_assign_str(command_str, command_str);
		__entry->opcode = opcode;
		__entry->op_mod = op_mod;
		lab_assign_str(status_str, status_str);
		__entry->status = status;
		__entry->syndrome = syndrome;
		__entry->err = err;
	),
	TP_printk("%s opcode %#x op_mod %#x status %s %#x syndrome %#x err %d", __get_str(command_str),
		  __entry->opcode, __entry->op_mod, __get_str(status_str), __entry->status, __entry->syndrome,
		  __entry->err)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE mlx5_cmd_trace
#include <trace/define_trace.h>
