/* SPDX-License-Identifier: GPL-2.0 */
/* What the two stand-ins share: the firmware command interface in the real driver's shape. */
#ifndef LAB_MLX5_CMD_H
#define LAB_MLX5_CMD_H

#include <linux/types.h>

struct mlx5_core_dev;

/* Opcodes of the commands that the stand-in's verbs issue. */
enum {
	MLX5_CMD_OP_CREATE_MKEY = 0x200,
	MLX5_CMD_OP_CREATE_CQ = 0x400,
	MLX5_CMD_OP_ALLOC_PD = 0x800,
};

/* Every command begins so, in big endian: opcode, user, reserved, modifier; every answer: status, syndrome. */
struct lab_command {
	__be16 opcode;
	__be16 uid;
	__be16 reserved;
	__be16 op_mod;
};

struct lab_answer {
	u8 status;
	u8 reserved[3];
	__be32 syndrome;
};

int mlx5_cmd_do(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size);
int mlx5_cmd_check(struct mlx5_core_dev *dev, int err, void *in, void *out);
int mlx5_cmd_exec(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size);

#endif
