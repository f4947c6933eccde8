/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the lab's NIC share: one end of its cable, and groups of counters. */
#ifndef LAB_FSNIC_H
#define LAB_FSNIC_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/skbuff.h>
#include <linux/types.h>

struct devlink;
struct ib_device;
struct ib_pd;
struct ib_qp;
struct rdma;

/* A counter, or a setting that is handled like one: value, what it grows by, and how its reads go wrong. */
struct counter {
	char name[ETH_GSTRING_LEN];
	/* The value at since_ns of CLOCK_MONOTONIC. */
	u64 value;
	u64 since_ns;
	/* Growth per millisecond, for the first on_ms of each period_ms, for for_ms in all (0: for ever). */
	u64 per_ms;
	u64 on_ms;
	u64 period_ms;
	u64 for_ms;
	/* Wraps, or else stays at its greatest value, after so many bits. */
	unsigned int bits;
	bool saturates;
	bool hidden;
	int error;
	/* Shown only while pause is on: for this priority, or for the whole link (PAUSE_GLOBAL). */
	int pause;
};

#define PRIORITIES 8
#define PAUSE_NONE (-1)
#define PAUSE_GLOBAL PRIORITIES

/* What a group's interface can be made to do wrong. */
enum {
	MAY_HIDE = 1 << 0,
	MAY_FAIL = 1 << 1,
	MAY_FAIL_EACH = 1 << 2,
};

/* Counters that one kernel interface shows. */
struct group {
	const char *file;
	unsigned int may;
	struct nic *nic;
	/* Guards everything below. What can change how many names a group shows takes the RTNL too. */
	spinlock_t lock;
	struct counter *counters;
	unsigned int count;
	int error;
	unsigned int delay_us;
};

enum {
	GROUP_ETHTOOL,
	GROUP_PAUSE,
	GROUP_FEC,
	GROUP_PHY,
	GROUP_LINK,
	GROUP_DCB,
	GROUP_HW,
	GROUP_QP,
	GROUP_PORT,
	GROUPS,
};

/* The counters of the small groups, in the order of their names in main.c. */
enum { PAUSE_TX_FRAMES, PAUSE_RX_FRAMES, PAUSE_TX_STORMS, PAUSE_TX_ON, PAUSE_RX_ON };
enum { FEC_CORRECTED_BLOCKS, FEC_UNCORRECTABLE_BLOCKS, FEC_CORRECTED_BITS };
enum { PHY_SYMBOL_ERRORS };
enum { LINK_SPEED, LINK_CARRIER, LINK_DOWN_EVENTS, LINK_STUCK, LINK_HOLD };
enum { DCB_PFC_EN, DCB_PFC_CAP };

#define QUEUE_PAIRS 2

/* One end of the cable. */
struct nic {
	struct platform_device *platform;
	struct net_device *netdev;
	struct rdma *rdma;
	struct ib_pd *pd;
	struct ib_qp *queue_pairs[QUEUE_PAIRS];
	unsigned int queue_pairs_count;
	struct devlink *devlink;
	struct dentry *folder;
	struct group groups[GROUPS];
	/* What the other end sent and the host has not taken. */
	struct sk_buff_head received;
	struct napi_struct napi;
	/* Written under the RTNL. */
	bool open;
	bool stuck;
	bool hold;
};

/* counters.c: reading and changing them. */
int group_init(struct group *group, const char *names);
void group_free(struct group *group);
void counter_set(struct group *group, unsigned int index, u64 value);
u64 counter_at(const struct counter *counter, u64 now_ns);
u64 counter_now(struct group *group, unsigned int index);
void counter_report(struct group *group, unsigned int index, u64 *into);
int group_fails(struct group *group);
int counter_fails(struct group *group, unsigned int index);
bool group_has_failing(struct group *group);
void group_wait(struct group *group);
int group_line(struct group *group, char *line, u64 *now_ns);

/* control.c: the files in debugfs. */
void control_add(struct nic *nic, struct dentry *parent);

/* netdev.c: the Ethernet device and the cable. */
struct net_device *netdev_make(struct platform_device *platform);
int netdev_start(struct nic *nic);
void netdev_end(struct nic *nic);
void netdev_changed(struct nic *nic);

/* ethtool.c: its statistics, settings and DCB. */
void ethtool_init(struct net_device *netdev);
void ethtool_pause_names(struct group *group);

/* rdma.c: the RDMA device. */
extern const char port_names[];
int rdma_start(struct nic *nic, const char *name, bool narrow);
void rdma_end(struct nic *nic);
struct nic *rdma_nic(struct ib_device *ib);

/* qp.c: its queue pairs. */
void qp_init(struct ib_device *ib);
int qp_start(struct nic *nic, struct ib_device *ib);
void qp_end(struct nic *nic);

/* health.c: reports of its health. */
int health_start(struct nic *nic);
void health_control(struct nic *nic);
void health_end(struct nic *nic);

#endif
