// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for mlx5_ib: an RDMA device mlx5_0 whose alloc_pd, reg_mr and create_cq ask the stand-in's firmware. What
 * the firmware accepts works as far as a program needs to get to the next call; no data can be sent.
 *
 * The device says that it is soft-RoCE: its provider in user space needs nothing of the hardware, so that ordinary
 * programs open the device and their calls reach the kernel. (A completion queue that the firmware accepts is refused
 * by that provider afterwards, with EINVAL: there is no queue to map.)
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

#include "mlx5_cmd.h"

struct lab_device {
	struct ib_device ib;
};

static struct lab_device *device;

static int command(u16 opcode)
{
	struct lab_command in = { .opcode = cpu_to_be16(opcode) };
	struct lab_answer out;

	return mlx5_cmd_exec(NULL, &in, sizeof(in), &out, sizeof(out));
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_qp = 1;
	attr->max_cq = 16;
	attr->max_cqe = 4096;
	attr->max_mr = 4096;
	attr->max_pd = 4096;
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_ACTIVE;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->active_speed = IB_SPEED_NDR;
	attr->active_width = IB_WIDTH_4X;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

static noinline int mlx5_ib_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return command(MLX5_CMD_OP_ALLOC_PD);
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
static noinline int mlx5_ib_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
#else
static noinline int mlx5_ib_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
				      struct uverbs_attr_bundle *attrs)
#endif
{
	cq->cqe = attr->cqe;
	return command(MLX5_CMD_OP_CREATE_CQ);
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

/* The steering hints came in 6.17. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
static noinline struct ib_mr *mlx5_ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access_flags,
						  struct ib_udata *udata)
#else
static noinline struct ib_mr *mlx5_ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access_flags,
						  struct ib_dmah *dmah, struct ib_udata *udata)
#endif
{
	struct ib_mr *mr;
	int error = command(MLX5_CMD_OP_CREATE_MKEY);

	if (error)
		return ERR_PTR(error);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	return mr ? mr : ERR_PTR(-ENOMEM);
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}

static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	/* The version that the soft-RoCE provider asks for. */
	.uverbs_abi_ver = 2,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.alloc_pd = mlx5_ib_alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_cq = mlx5_ib_create_cq,
	.destroy_cq = destroy_cq,
	.reg_user_mr = mlx5_ib_reg_user_mr,
	.dereg_mr = dereg_mr,
	.size_ib_ucontext = sizeof(struct ib_ucontext),
	.size_ib_pd = sizeof(struct ib_pd),
	.size_ib_cq = sizeof(struct ib_cq),
};

static int __init lab_init(void)
{
	int error;

	device = ib_alloc_device(lab_device, ib);
	if (!device)
		return -ENOMEM;
	device->ib.node_type = RDMA_NODE_IB_CA;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.node_guid = cpu_to_be64(0x020000fffe000001);
	ib_set_device_ops(&device->ib, &operations);
	error = ib_register_device(&device->ib, "mlx5_0", NULL);
	if (error)
		ib_dealloc_device(&device->ib);
	return error;
}

static void __exit lab_exit(void)
{
	ib_unregister_device(&device->ib);
	ib_dealloc_device(&device->ib);
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("lab stand-in for mlx5_ib");
MODULE_LICENSE("GPL");
