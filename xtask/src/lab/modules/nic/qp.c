// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs of an end's RDMA device, made by the driver for itself, so that counters can be bound to them. They carry
 * nothing.
 */
#include <linux/version.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "fsnic.h"

/* The first one's number. */
#define NUMBER 17

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct nic *nic = attr->qp_context;

	qp->qp_num = NUMBER + nic->queue_pairs_count;
	return 0;
}

static int destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

/* The port came as an argument. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define AT_PORT
#else
#define AT_PORT , u32 port
#endif

static int bind(struct rdma_counter *counter, struct ib_qp *qp AT_PORT)
{
	/* The kernel leaves the number to the driver. */
	if (!counter->id)
		counter->id = qp->qp_num;
	qp->counter = counter;
	return 0;
}

static int unbind(struct ib_qp *qp AT_PORT)
{
	qp->counter = NULL;
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static void counter_init(struct rdma_counter *counter)
{
}
#endif

static int counter_dealloc(struct rdma_counter *counter)
{
	return 0;
}

static struct rdma_hw_stats *counter_alloc_stats(struct rdma_counter *counter)
{
	return counter->device->ops.alloc_hw_port_stats(counter->device, counter->port);
}

static int counter_update_stats(struct rdma_counter *counter)
{
	struct group *group = &rdma_nic(counter->device)->groups[GROUP_QP];
	unsigned int i;

	group_wait(group);
	for (i = 0; i < group->count; i++)
		counter->stats->value[i] = counter_now(group, i);
	return 0;
}

static const struct ib_device_ops operations = {
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_qp = create_qp,
	.destroy_qp = destroy_qp,
	.counter_bind_qp = bind,
	.counter_unbind_qp = unbind,
	.counter_dealloc = counter_dealloc,
	.counter_alloc_stats = counter_alloc_stats,
	.counter_update_stats = counter_update_stats,
	.size_ib_pd = sizeof(struct ib_pd),
	.size_ib_qp = sizeof(struct ib_qp),
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	.counter_init = counter_init,
	.size_rdma_counter = sizeof(struct rdma_counter),
#endif
};

/* Before the device is registered. */
void qp_init(struct ib_device *ib)
{
	ib_set_device_ops(ib, &operations);
}

/* Once it is. */
int qp_start(struct nic *nic, struct ib_device *ib)
{
	struct ib_qp_init_attr attr = { .qp_type = IB_QPT_RC, .qp_context = nic };

	nic->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(nic->pd))
		return PTR_ERR(nic->pd);
	while (nic->queue_pairs_count < QUEUE_PAIRS) {
		struct ib_qp *qp = ib_create_qp(nic->pd, &attr);

		if (IS_ERR(qp)) {
			qp_end(nic);
			return PTR_ERR(qp);
		}
		nic->queue_pairs[nic->queue_pairs_count++] = qp;
	}
	return 0;
}

void qp_end(struct nic *nic)
{
	while (nic->queue_pairs_count)
		ib_destroy_qp(nic->queue_pairs[--nic->queue_pairs_count]);
	ib_dealloc_pd(nic->pd);
}
