// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of an end: its port counters and hw_counters. Programs list it but cannot open it: it says that it is
 * of mlx5, and cannot be of soft-RoCE (whose provider needs no hardware), because soft-RoCE takes every such device on
 * a network device for its own.
 *
 * The kernel asks for hw_counters by number: sysfs for the one whose file is read, netlink for number 0 and takes as
 * many as it is told were read. sysfs keeps the values for `lifespan` if all were read. So that a failing file fails
 * each time, reads say while any counter fails that they gave all but the last: an optional one, which has no file.
 */
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_verbs.h>

#include "fsnic.h"

struct rdma {
	struct ib_device ib;
	struct nic *nic;
	struct rdma_stat_desc *descriptions;
	bool narrow;
};

#define DATA_OFFSET 40
#define GIDS 16

struct nic *rdma_nic(struct ib_device *ib)
{
	return container_of(ib, struct rdma, ib)->nic;
}

/* Where the port's counters stand in the answers of a performance agent, in bits; 0: not in that answer. */
static const struct {
	unsigned int offset;
	unsigned int bits;
	unsigned int extended;
} port_fields[] = {
	{ 32, 16 }, { 48, 8 }, { 56, 8 }, { 64, 16 }, { 80, 16 }, { 96, 16 }, { 112, 16 }, { 128, 8 }, { 136, 8 },
	{ 152, 4 }, { 156, 4 }, { 176, 16 }, { 320, 32 }, { 192, 32, 64 }, { 224, 32, 128 }, { 256, 32, 192 },
	{ 288, 32, 256 }, { 0, 0, 320 }, { 0, 0, 384 }, { 0, 0, 448 }, { 0, 0, 512 },
};

/* Their names in sysfs, in the same order. */
const char port_names[] =
	"symbol_error,link_error_recovery,link_downed,port_rcv_errors,port_rcv_remote_physical_errors,"
	"port_rcv_switch_relay_errors,port_xmit_discards,port_xmit_constraint_errors,port_rcv_constraint_errors,"
	"local_link_integrity_errors,excessive_buffer_overrun_errors,VL15_dropped,port_xmit_wait,port_xmit_data,"
	"port_rcv_data,port_xmit_packets,port_rcv_packets,unicast_xmit_packets,unicast_rcv_packets,"
	"multicast_xmit_packets,multicast_rcv_packets";

/* Puts a value there in big endian; one that is too great stays at the field's greatest. */
static void put(u8 *data, unsigned int offset, unsigned int bits, u64 value)
{
	unsigned int i;

	if (bits < 64)
		value = min(value, (1ULL << bits) - 1);
	data += offset / 8;
	if (bits < 8) {
		*data |= value << (8 - bits - offset % 8);
		return;
	}
	for (i = 0; i < bits / 8; i++)
		data[i] = value >> (bits - 8 * (i + 1));
}

static int process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey)
{
	struct rdma *rdma = container_of(ib, struct rdma, ib);
	struct group *group = &rdma->nic->groups[GROUP_PORT];
	bool extended = in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS_EXT;
	u8 *data = out->data + DATA_OFFSET;
	unsigned int i;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT)
		return IB_MAD_RESULT_SUCCESS;
	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO) {
		if (!rdma->narrow)
			((struct ib_class_port_info *)data)->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	}
	group_wait(group);
	if (group_fails(group) || (!extended && in->mad_hdr.attr_id != IB_PMA_PORT_COUNTERS) ||
	    (extended && rdma->narrow))
		return IB_MAD_RESULT_FAILURE;
	for (i = 0; i < ARRAY_SIZE(port_fields); i++) {
		unsigned int offset = extended ? port_fields[i].extended : port_fields[i].offset;

		if (!offset)
			continue;
		/* Where there are wide counters, nobody reads the narrow ones of the same name. */
		if (counter_fails(group, i) && (extended || rdma->narrow || !port_fields[i].extended))
			return IB_MAD_RESULT_FAILURE;
		put(data, offset, extended ? 64 : port_fields[i].bits, counter_now(group, i));
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static struct rdma_hw_stats *alloc_hw_port_stats(struct ib_device *ib, u32 port)
{
	struct rdma *rdma = container_of(ib, struct rdma, ib);
	unsigned int count = rdma->nic->groups[GROUP_HW].count;
	struct rdma_hw_stats *stats =
		rdma_alloc_hw_stats_struct(rdma->descriptions, count, RDMA_HW_STATS_DEFAULT_LIFESPAN);
	unsigned int i;

	for (i = 0; stats && i < count; i++)
		if (rdma->descriptions[i].flags & IB_STAT_FLAG_OPTIONAL)
			set_bit(i, stats->is_disabled);
	return stats;
}

static int get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct group *group = &rdma_nic(ib)->groups[GROUP_HW];
	int error = group_fails(group);
	unsigned int i;
	u64 now_ns;

	group_wait(group);
	if (!error && index < group->count)
		error = counter_fails(group, index);
	if (error)
		return error;
	spin_lock(&group->lock);
	now_ns = ktime_get_ns();
	for (i = 0; i < group->count; i++)
		stats->value[i] = counter_at(&group->counters[i], now_ns);
	spin_unlock(&group->lock);
	return index < group->count && group_has_failing(group) ? group->count - 1 : group->count;
}

/* The kernel keeps which of the optional counters are on. */
static int modify_hw_stat(struct ib_device *ib, u32 port, unsigned int index, bool enable)
{
	return 0;
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = PAGE_SIZE;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct nic *nic = rdma_nic(ib);
	struct group *group = &nic->groups[GROUP_LINK];
	bool up = netif_carrier_ok(nic->netdev);
	int error = counter_fails(group, LINK_SPEED);

	if (error)
		return error;
	group_wait(group);
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_1024;
	attr->gid_tbl_len = GIDS;
	attr->pkey_tbl_len = 1;
	attr->ip_gids = true;
	return ib_get_eth_speed(ib, port, &attr->active_speed, &attr->active_width);
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = GIDS;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_AF_IB | RDMA_CORE_CAP_ETH_AH;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/* The table of GIDs is the kernel's: the device has nothing to note. */
static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void get_dev_fw_str(struct ib_device *ib, char *text)
{
	strscpy(text, "lab", IB_FW_VERSION_NAME_MAX);
}

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

/* With it the device can move to another name space. */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_MLX5,
	.uverbs_abi_ver = 1,
	.process_mad = process_mad,
	.alloc_hw_port_stats = alloc_hw_port_stats,
	.get_hw_stats = get_hw_stats,
	.modify_hw_stat = modify_hw_stat,
	.query_device = query_device,
	.query_port = query_port,
	.query_pkey = query_pkey,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.add_gid = add_gid,
	.del_gid = del_gid,
	.get_dev_fw_str = get_dev_fw_str,
	.alloc_ucontext = alloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.size_ib_ucontext = sizeof(struct ib_ucontext),
};

int rdma_start(struct nic *nic, const char *name, bool narrow)
{
	struct group *group = &nic->groups[GROUP_HW];
	struct rdma *rdma;
	unsigned int i;
	int error = -ENOMEM;

	if (WARN_ON(nic->groups[GROUP_PORT].count != ARRAY_SIZE(port_fields)))
		return -EINVAL;
	rdma = ib_alloc_device(rdma, ib);
	if (!rdma)
		return error;
	rdma->nic = nic;
	rdma->narrow = narrow;
	rdma->descriptions = kcalloc(group->count, sizeof(*rdma->descriptions), GFP_KERNEL);
	if (!rdma->descriptions)
		goto free;
	for (i = 0; i < group->count; i++) {
		rdma->descriptions[i].name = group->counters[i].name;
		if (!strncmp(group->counters[i].name, "cc_", 3))
			rdma->descriptions[i].flags = IB_STAT_FLAG_OPTIONAL;
	}
	rdma->ib.node_type = RDMA_NODE_IB_CA;
	rdma->ib.phys_port_cnt = 1;
	rdma->ib.num_comp_vectors = 1;
	rdma->ib.node_guid = cpu_to_be64(0x02f500fffe000001 + nic->platform->id);
	rdma->ib.dev.parent = &nic->platform->dev;
	strscpy(rdma->ib.node_desc, nic->netdev->name, sizeof(rdma->ib.node_desc));
	ib_set_device_ops(&rdma->ib, &operations);
	qp_init(&rdma->ib);
	error = ib_device_set_netdev(&rdma->ib, nic->netdev, 1);
	error = error ? error : ib_register_device(&rdma->ib, name, NULL);
	if (error)
		goto free;
	error = qp_start(nic, &rdma->ib);
	if (error)
		goto unregister;
	nic->rdma = rdma;
	return 0;

unregister:
	ib_unregister_device(&rdma->ib);
free:
	kfree(rdma->descriptions);
	ib_dealloc_device(&rdma->ib);
	return error;
}

void rdma_end(struct nic *nic)
{
	struct rdma_stat_desc *descriptions = nic->rdma->descriptions;

	qp_end(nic);
	ib_unregister_device(&nic->rdma->ib);
	ib_dealloc_device(&nic->rdma->ib);
	kfree(descriptions);
}
