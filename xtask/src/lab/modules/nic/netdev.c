// SPDX-License-Identifier: GPL-2.0
/* The two Ethernet devices and the cable between them: what one sends the other receives. */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "fsnic.h"

/* As many packets as wait at an end. */
#define RECEIVED_MAX 4096

/* Both ends, each at its platform device's number. */
static struct nic __rcu *ends[2];

static struct nic *other_end(struct nic *nic)
{
	return rcu_dereference_rtnl(ends[!nic->platform->id]);
}

/* Both ends see a carrier, or none does: both are up, and both are told to have one. Under the RTNL. */
static void carrier(struct nic *nic)
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

/* After its settings were changed, under the RTNL. */
void netdev_changed(struct nic *nic)
{
	carrier(nic);
	WRITE_ONCE(nic->stuck, !!counter_now(&nic->groups[GROUP_LINK], LINK_STUCK));
	WRITE_ONCE(nic->hold, !!counter_now(&nic->groups[GROUP_LINK], LINK_HOLD));
	if (nic->open && !nic->stuck)
		netif_wake_queue(nic->netdev);
	if (!nic->hold) {
		local_bh_disable();
		napi_schedule(&nic->napi);
		local_bh_enable();
	}
}

static int poll(struct napi_struct *napi, int budget)
{
	struct nic *nic = container_of(napi, struct nic, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&nic->received))) {
		DEV_STATS_INC(nic->netdev, rx_packets);
		DEV_STATS_ADD(nic->netdev, rx_bytes, skb->len + ETH_HLEN);
		napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

static int nic_open(struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);

	skb_queue_purge(&nic->received);
	napi_enable(&nic->napi);
	nic->open = true;
	netif_start_queue(netdev);
	carrier(nic);
	return 0;
}

static int nic_stop(struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);

	netif_stop_queue(netdev);
	nic->open = false;
	carrier(nic);
	napi_disable(&nic->napi);
	skb_queue_purge(&nic->received);
	return 0;
}

static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct nic *nic = netdev_priv(netdev);
	unsigned int length = skb->len;
	struct nic *peer;

	if (READ_ONCE(nic->stuck)) {
		netif_stop_queue(netdev);
		/* It may have been told otherwise just now. */
		if (!READ_ONCE(nic->stuck))
			netif_wake_queue(netdev);
		return NETDEV_TX_BUSY;
	}
	rcu_read_lock();
	peer = other_end(nic);
	skb_tx_timestamp(skb);
	if (!peer || !netif_carrier_ok(netdev)) {
		kfree_skb(skb);
		DEV_STATS_INC(netdev, tx_dropped);
	} else if (skb_queue_len_lockless(&peer->received) >= RECEIVED_MAX) {
		kfree_skb(skb);
		DEV_STATS_INC(peer->netdev, rx_dropped);
	} else if (__dev_forward_skb(peer->netdev, skb)) {
		DEV_STATS_INC(peer->netdev, rx_dropped);
	} else {
		skb_queue_tail(&peer->received, skb);
		if (!READ_ONCE(peer->hold))
			napi_schedule(&peer->napi);
		DEV_STATS_INC(netdev, tx_packets);
		DEV_STATS_ADD(netdev, tx_bytes, length);
	}
	rcu_read_unlock();
	return NETDEV_TX_OK;
}

/* The kernel has told of it: the queue stays stuck until it is told otherwise. */
static void tx_timeout(struct net_device *netdev, unsigned int queue)
{
}

static const struct net_device_ops operations = {
	.ndo_open = nic_open,
	.ndo_stop = nic_stop,
	.ndo_start_xmit = nic_xmit,
	.ndo_tx_timeout = tx_timeout,
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
	netdev->watchdog_timeo = HZ;
	eth_hw_addr_set(netdev, address);
	skb_queue_head_init(&nic->received);
	netif_napi_add(netdev, &nic->napi, poll);
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
	carrier(nic);
	rtnl_unlock();
	return 0;
}

void netdev_end(struct nic *nic)
{
	rtnl_lock();
	RCU_INIT_POINTER(ends[nic->platform->id], NULL);
	carrier(nic);
	rtnl_unlock();
	/* Waits for those who still send to it. */
	unregister_netdev(nic->netdev);
	skb_queue_purge(&nic->received);
}
