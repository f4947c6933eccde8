// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for mlx5_core whose "firmware" refuses the commands it is told to, with a status and a syndrome. It has the
 * real driver's function names and tracepoint, so that a tracer's hooks for the firmware layer really fire. It shows
 * that the hooks work together; it shows nothing about a NIC.
 *
 * Parameters (writable in /sys/module/mlx5_core/parameters): opcode (0: every command is accepted), status, syndrome;
 * unwell: writing it has the driver say that the firmware of its device, labmlx5, is not well.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/platform_device.h>

#include "mlx5_cmd.h"

#define CREATE_TRACE_POINTS
#include "mlx5_cmd_trace.h"

static uint opcode;
module_param(opcode, uint, 0644);
MODULE_PARM_DESC(opcode, "the command that is refused (0: none)");

static uint status = 0x3;
module_param(status, uint, 0644);
MODULE_PARM_DESC(status, "the status it is refused with");

static uint syndrome = 0x1a2b3c;
module_param(syndrome, uint, 0644);
MODULE_PARM_DESC(syndrome, "the syndrome it is refused with");

/* Firmware statuses: their names and the errors that the real driver gives its callers. */
static const struct {
	u8 status;
	int error;
	const char *name;
} statuses[] = {
	{ 0x01, -EIO, "internal error" },
	{ 0x02, -EINVAL, "bad operation" },
	{ 0x03, -EINVAL, "bad parameter" },
	{ 0x04, -EIO, "bad system state" },
	{ 0x05, -EINVAL, "bad resource" },
	{ 0x06, -EBUSY, "resource busy" },
	{ 0x08, -ENOMEM, "limits exceeded" },
	{ 0x09, -EINVAL, "bad resource state" },
	{ 0x0a, -EINVAL, "bad index" },
	{ 0x0f, -EAGAIN, "no resources" },
	{ 0x10, -EINVAL, "bad QP state" },
	{ 0x30, -EINVAL, "bad packet" },
	{ 0x40, -EINVAL, "bad size too many outstanding CQEs" },
	{ 0x50, -EIO, "bad input length" },
	{ 0x51, -EIO, "bad output length" },
};

static const char *command_name(u16 command)
{
	switch (command) {
	case MLX5_CMD_OP_CREATE_MKEY:
		return "CREATE_MKEY";
	case MLX5_CMD_OP_CREATE_CQ:
		return "CREATE_CQ";
	case MLX5_CMD_OP_ALLOC_PD:
		return "ALLOC_PD";
	default:
		return "unknown command";
	}
}

/* Carries a command to the "firmware": EREMOTEIO says that the answer holds a refusal. */
noinline int mlx5_cmd_do(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size)
{
	const struct lab_command *command = in;
	struct lab_answer *answer = out;

	if (in_size < sizeof(*command) || out_size < sizeof(*answer))
		return -EINVAL;
	memset(out, 0, out_size);
	if (!opcode || be16_to_cpu(command->opcode) != opcode)
		return 0;
	answer->status = status;
	answer->syndrome = cpu_to_be32(syndrome);
	return -EREMOTEIO;
}
EXPORT_SYMBOL(mlx5_cmd_do);

/* Turns a refusal into an error for the caller, and tells the tracepoint. */
noinline int mlx5_cmd_check(struct mlx5_core_dev *dev, int err, void *in, void *out)
{
	const struct lab_command *command = in;
	const struct lab_answer *answer = out;
	u16 number = be16_to_cpu(command->opcode);
	const char *name = "unknown status";
	int error = -EIO;
	size_t i;

	if (err != -EREMOTEIO)
		return err;
	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		if (statuses[i].status == answer->status) {
			name = statuses[i].name;
			error = statuses[i].error;
		}
	}
	trace_mlx5_cmd(command_name(number), number, be16_to_cpu(command->op_mod), name, answer->status,
		       be32_to_cpu(answer->syndrome), error);
	return error;
}
EXPORT_SYMBOL(mlx5_cmd_check);

noinline int mlx5_cmd_exec(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size)
{
	return mlx5_cmd_check(dev, mlx5_cmd_do(dev, in, in_size, out, out_size), in, out);
}
EXPORT_SYMBOL(mlx5_cmd_exec);

/* The real driver's name for its device, not where the real one has it: hooks have to look it up. */
struct mlx5_core_dev {
	u64 others[3];
	struct device *device;
};

static struct platform_device *platform;
static struct mlx5_core_dev core;

/* As a function of its own, with its argument, whatever the compiler sees. */
static noinline __attribute__((__noipa__)) void print_health_info(struct mlx5_core_dev *dev)
{
	dev_warn(dev->device, "the firmware is not well\n");
}

static int set_unwell(const char *value, const struct kernel_param *parameter)
{
	print_health_info(&core);
	return 0;
}

static const struct kernel_param_ops unwell_operations = { .set = set_unwell };
module_param_cb(unwell, &unwell_operations, NULL, 0200);
MODULE_PARM_DESC(unwell, "written: the firmware is not well");

static int __init start(void)
{
	platform = platform_device_register_simple("labmlx5", PLATFORM_DEVID_NONE, NULL, 0);
	core.device = &platform->dev;
	return PTR_ERR_OR_ZERO(platform);
}

static void __exit end(void)
{
	platform_device_unregister(platform);
}

module_init(start);
module_exit(end);
MODULE_DESCRIPTION("lab stand-in for mlx5_core");
MODULE_LICENSE("GPL");
