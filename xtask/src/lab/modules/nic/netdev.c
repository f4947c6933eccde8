// SPDX-License-Identifier: GPL-2.0
/* The two Ethernet devices and the cable between them: what one sends the other receives. */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "fsnic.h"

/* Both ends, each at its platform device's number. */
static struct nic __rcu *ends[2];

static struct nic *other_end(struct nic *nic)
{
	return rcu_dereference_rtnl(ends[!nic->platform->id]);
}

/* Both ends see a carrier, or none does: both are up, and both are told to have one. Under the RTNL. */
void netdev_carrier(struct nic *nic)
{
	struct nic *peer = other_end(nic);
	bool on = peer && nic->open && peer->open && counter_now(&nic->groups[GROUP_LINK], LINK_CARRIER) &&
		  counter_now(&peer->groups[GROUP_LINK], LINK_CARRIER);

	if (on) {
		netif_carrier_on(nic->netdev);
		netif_carrier_on(peer->netdev);
	} else {
		netif_carrier_off(nic->netdev);
		if (peer)
			netif_carrier_off(peer->netdev);
	}
}

static int nic_open(struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);

	nic->open = true;
	netif_start_queue(netdev);
	netdev_carrier(nic);
	return 0;
}

static int nic_stop(struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);

	netif_stop_queue(netdev);
	nic->open = false;
	netdev_carrier(nic);
	return 0;
}

static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);
	unsigned int length = skb->len;
	struct nic *peer;

	rcu_read_lock();
	peer = other_end(nic);
	skb_tx_timestamp(skb);
	if (!peer || !netif_carrier_ok(netdev)) {
		dev_kfree_skb_any(skb);
		DEV_STATS_INC(netdev, tx_dropped);
	} else if (dev_forward_skb(peer->netdev, skb) == NET_RX_SUCCESS) {
		DEV_STATS_INC(netdev, tx_packets);
		DEV_STATS_ADD(netdev, tx_bytes, length);
		DEV_STATS_INC(peer->netdev, rx_packets);
		DEV_STATS_ADD(peer->netdev, rx_bytes, length);
	} else {
		DEV_STATS_INC(peer->netdev, rx_dropped);
	}
	rcu_read_unlock();
	return NETDEV_TX_OK;
}

static const struct net_device_ops operations = {
	.ndo_open = nic_open,
	.ndo_stop = nic_stop,
	.ndo_start_xmit = nic_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

struct net_device *netdev_make(struct platform_device *platform)
{
	struct net_device *netdev = alloc_etherdev(sizeof(struct nic));
	u8 address[ETH_ALEN] = { 0x02, 0xf5, 0, 0, 0, platform->id + 1 };
	struct nic *nic;

	if (!netdev)
		return NULL;
	nic = netdev_priv(netdev);
	nic->netdev = netdev;
	nic->platform = platform;
	snprintf(netdev->name, sizeof(netdev->name), "fsnic%d", platform->id);
	SET_NETDEV_DEV(netdev, &platform->dev);
	netdev->netdev_ops = &operations;
	netdev->max_mtu = 9978;
	eth_hw_addr_set(netdev, address);
	return netdev;
}

int netdev_start(struct nic *nic)
{
	int error;

	netif_carrier_off(nic->netdev);
	error = register_netdev(nic->netdev);
	if (error)
		return error;
	rtnl_lock();
	rcu_assign_pointer(ends[nic->platform->id], nic);
	netdev_carrier(nic);
	rtnl_unlock();
	return 0;
}

void netdev_end(struct nic *nic)
{
	rtnl_lock();
	RCU_INIT_POINTER(ends[nic->platform->id], NULL);
	nic->open = false;
	netdev_carrier(nic);
	rtnl_unlock();
	/* Waits for those who still send to it. */
	unregister_netdev(nic->netdev);
}
