// SPDX-License-Identifier: GPL-2.0
/* What ethtool and dcb read and set: statistics, standard groups, link, pause, and the priorities that have PFC. */
#include <linux/ethtool.h>
#include <linux/version.h>
#include <net/dcbnl.h>

#include "fsnic.h"

static struct group *group_of(struct net_device *netdev, int which)
{
	struct nic *nic = netdev_priv(netdev);

	return &nic->groups[which];
}

/* Of a firmware that no longer answers, nothing can be read. */
static int begin(struct net_device *netdev)
{
	return group_fails(group_of(netdev, GROUP_LINK));
}

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, netdev->dev.parent->driver->name, sizeof(info->driver));
	strscpy(info->bus_info, dev_name(netdev->dev.parent), sizeof(info->bus_info));
	strscpy(info->fw_version, "lab", sizeof(info->fw_version));
}

/* Marks the names that show only while pause is on, as mlx5 shows them: (rx|tx)_(prioN|global)_pause... */
void ethtool_pause_names(struct group *group)
{
	unsigned int i;

	for (i = 0; i < group->count; i++) {
		struct counter *counter = &group->counters[i];
		const char *rest = counter->name + 2;

		if (strncmp(counter->name, "rx", 2) && strncmp(counter->name, "tx", 2))
			continue;
		if (!strncmp(rest, "_global_pause", 13))
			counter->pause = PAUSE_GLOBAL;
		else if (!strncmp(rest, "_prio", 5) && rest[5] >= '0' && rest[5] <= '7' &&
			 !strncmp(rest + 6, "_pause", 6))
			counter->pause = rest[5] - '0';
	}
}

/* The counters that ethtool shows now, with their values or their names. The RTNL keeps their number. */
static unsigned int shown(struct net_device *netdev, u64 *values, u8 *names)
{
	struct group *group = group_of(netdev, GROUP_ETHTOOL);
	struct group *pause = group_of(netdev, GROUP_PAUSE);
	u64 on = counter_now(group_of(netdev, GROUP_DCB), DCB_PFC_EN) & 0xff;
	unsigned int count = 0;
	unsigned int i;
	u64 now_ns;

	if (counter_now(pause, PAUSE_TX_ON) || counter_now(pause, PAUSE_RX_ON))
		on |= 1 << PAUSE_GLOBAL;
	spin_lock(&group->lock);
	now_ns = ktime_get_ns();
	for (i = 0; i < group->count; i++) {
		const struct counter *counter = &group->counters[i];

		if (counter->hidden || (counter->pause != PAUSE_NONE && !(on & (1 << counter->pause))))
			continue;
		if (values)
			values[count] = counter_at(counter, now_ns);
		if (names)
			memcpy(names + count * ETH_GSTRING_LEN, counter->name, ETH_GSTRING_LEN);
		count++;
	}
	spin_unlock(&group->lock);
	return count;
}

static int get_sset_count(struct net_device *netdev, int set)
{
	int error = group_fails(group_of(netdev, GROUP_ETHTOOL));

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return error ? error : shown(netdev, NULL, NULL);
}

static void get_strings(struct net_device *netdev, u32 set, u8 *names)
{
	if (set == ETH_SS_STATS)
		shown(netdev, NULL, names);
}

static void get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *values)
{
	group_wait(group_of(netdev, GROUP_ETHTOOL));
	shown(netdev, values, NULL);
}

static void get_pause_stats(struct net_device *netdev, struct ethtool_pause_stats *stats)
{
	struct group *group = group_of(netdev, GROUP_PAUSE);

	group_wait(group);
	counter_report(group, PAUSE_TX_FRAMES, &stats->tx_pause_frames);
	counter_report(group, PAUSE_RX_FRAMES, &stats->rx_pause_frames);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
	counter_report(group, PAUSE_TX_STORMS, &stats->tx_pause_storm_events);
#endif
}

static void get_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	pause->tx_pause = !!counter_now(group_of(netdev, GROUP_PAUSE), PAUSE_TX_ON);
	pause->rx_pause = !!counter_now(group_of(netdev, GROUP_PAUSE), PAUSE_RX_ON);
}

static int set_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	if (pause->autoneg)
		return -EOPNOTSUPP;
	counter_set(group_of(netdev, GROUP_PAUSE), PAUSE_TX_ON, pause->tx_pause);
	counter_set(group_of(netdev, GROUP_PAUSE), PAUSE_RX_ON, pause->rx_pause);
	return 0;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
static void get_fec_stats(struct net_device *netdev, struct ethtool_fec_stats *stats)
#else
static void get_fec_stats(struct net_device *netdev, struct ethtool_fec_stats *stats, struct ethtool_fec_hist *hist)
#endif
{
	struct group *group = group_of(netdev, GROUP_FEC);

	group_wait(group);
	counter_report(group, FEC_CORRECTED_BLOCKS, &stats->corrected_blocks.total);
	counter_report(group, FEC_UNCORRECTABLE_BLOCKS, &stats->uncorrectable_blocks.total);
	counter_report(group, FEC_CORRECTED_BITS, &stats->corrected_bits.total);
}

static int get_fecparam(struct net_device *netdev, struct ethtool_fecparam *fec)
{
	fec->active_fec = ETHTOOL_FEC_RS;
	fec->fec = ETHTOOL_FEC_RS;
	return group_fails(group_of(netdev, GROUP_FEC));
}

static void get_eth_phy_stats(struct net_device *netdev, struct ethtool_eth_phy_stats *stats)
{
	group_wait(group_of(netdev, GROUP_PHY));
	counter_report(group_of(netdev, GROUP_PHY), PHY_SYMBOL_ERRORS, &stats->SymbolErrorDuringCarrier);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static void get_link_ext_stats(struct net_device *netdev, struct ethtool_link_ext_stats *stats)
{
	counter_report(group_of(netdev, GROUP_LINK), LINK_DOWN_EVENTS, &stats->link_down_events);
}
#endif

static int get_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *settings)
{
	struct group *group = group_of(netdev, GROUP_LINK);

	group_wait(group);
	settings->base.port = PORT_FIBRE;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.autoneg = AUTONEG_DISABLE;
	settings->base.speed = netif_carrier_ok(netdev) ? counter_now(group, LINK_SPEED) : SPEED_UNKNOWN;
	return counter_fails(group, LINK_SPEED);
}

static int set_link_ksettings(struct net_device *netdev, const struct ethtool_link_ksettings *settings)
{
	if (settings->base.autoneg || settings->base.duplex == DUPLEX_HALF)
		return -EOPNOTSUPP;
	if (settings->base.speed != SPEED_UNKNOWN)
		counter_set(group_of(netdev, GROUP_LINK), LINK_SPEED, settings->base.speed);
	return 0;
}

static const struct ethtool_ops operations = {
	.begin = begin,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.set_link_ksettings = set_link_ksettings,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	.get_link_ext_stats = get_link_ext_stats,
#endif
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_pause_stats = get_pause_stats,
	.get_pauseparam = get_pauseparam,
	.set_pauseparam = set_pauseparam,
	.get_fec_stats = get_fec_stats,
	.get_fecparam = get_fecparam,
	.get_eth_phy_stats = get_eth_phy_stats,
};

/* As with mlx5, indications and requests are the pause frames received and sent: the first name of a priority's. */
static u64 priority_value(struct net_device *netdev, const char *direction, int priority)
{
	struct group *group = group_of(netdev, GROUP_ETHTOOL);
	char name[ETH_GSTRING_LEN];
	unsigned int i;

	snprintf(name, sizeof(name), "%s_prio%d_pause", direction, priority);
	for (i = 0; i < group->count; i++)
		if (!strcmp(group->counters[i].name, name))
			return counter_now(group, i);
	return 0;
}

static int get_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct group *group = group_of(netdev, GROUP_DCB);
	int error = group_fails(group);
	int i;

	group_wait(group);
	if (error)
		return error;
	pfc->pfc_cap = counter_now(group, DCB_PFC_CAP);
	pfc->pfc_en = counter_now(group, DCB_PFC_EN);
	for (i = 0; i < PRIORITIES; i++) {
		pfc->indications[i] = priority_value(netdev, "rx", i);
		pfc->requests[i] = priority_value(netdev, "tx", i);
	}
	return 0;
}

static int set_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	counter_set(group_of(netdev, GROUP_DCB), DCB_PFC_EN, pfc->pfc_en);
	return 0;
}

static u8 get_dcbx(struct net_device *netdev)
{
	return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
}

static const struct dcbnl_rtnl_ops dcb_operations = {
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.getdcbx = get_dcbx,
};

void ethtool_init(struct net_device *netdev)
{
	netdev->ethtool_ops = &operations;
	netdev->dcbnl_ops = &dcb_operations;
}
