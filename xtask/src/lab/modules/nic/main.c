// SPDX-License-Identifier: GPL-2.0
/*
 * A NIC for the lab: two Ethernet devices, fsnic0 and fsnic1, on one cable, each with an RDMA device. Packets really
 * cross the cable; every counter says what user space told it to say, through the kernel's own interfaces. It shows
 * how a reader of these interfaces behaves; it shows nothing about hardware.
 *
 * For each end there is a folder /sys/kernel/debug/fsnic/fsnic{0,1} with a file for each interface:
 *
 *   ethtool      `ethtool -S`: the names of mlx5. Pause names show as with the real driver: of the priorities that PFC
 *                is on for, global ones while pause is on for the link.
 *   pause        `ethtool -I -a`: tx_pause_frames, rx_pause_frames, tx_pause_storm_events (shown by 7.3);
 *                the settings tx_pause and rx_pause, 0 or 1 (also by `ethtool -A`)
 *   fec          `ethtool -I --show-fec`: corrected_blocks, uncorrectable_blocks, corrected_bits
 *   phy          `ethtool -S --groups eth-phy`: SymbolErrorDuringCarrier
 *   link         speed in Mb/s (also by `ethtool -s`; the RDMA port's rate is at most 100 Gb/s on 6.1), carrier 0 or 1,
 *                link_down_events (`ethtool -I`; from 6.12 on); stuck 0 or 1: nothing is sent, and the kernel tells
 *                of it each second (net:net_dev_xmit_timeout); hold 0 or 1: packets wait at the receiver, who then
 *                takes as many as NAPI's budget allows at a time (napi:napi_poll)
 *   dcb          `dcb pfc show`: pfc_en, a bit for each priority (also by `dcb pfc set`), and pfc_cap
 *   hw_counters  sysfs ports/1/hw_counters and `rdma statistic`. The optional ones (cc_...) are in netlink only, once
 *                they are switched on with `rdma statistic set link L optional-counters`.
 *   qp_counters  what a counter shows that is bound to the device's queue pairs, which are numbers 17 and 18 (`rdma
 *                statistic qp bind link L lqpn N`), by the names of hw_counters; the kernel adds it to those
 *   counters     sysfs ports/1/counters, in the device's own widths; port_*_data in words of four bytes
 *   health       takes a message that the reporter fw of devlink device platform/fsnic.{0,1} reports; it recovers at
 *                once, or stays in error if the message begins with `!`
 *
 * Packets are received by NAPI, up to 4096 wait, further ones are dropped.
 *
 * Reading a file shows its counters with all that is set, in columns. Writing takes lines:
 *
 *   NAME VALUE                                        the value from now on; ends growth
 *   add NAME AMOUNT                                   adds, and leaves growth as it is
 *   ramp NAME PER_MS [ON_MS PERIOD_MS [FOR_MS]]       grows by PER_MS in each ms, on the kernel's clock: always, or for
 *                                                     ON_MS of each PERIOD_MS; for FOR_MS in all. PER_MS 0 stops it.
 *   wrap NAME BITS, saturate NAME BITS                what the counter does beyond so many bits (64: nothing)
 *   hide NAME, show NAME                              not shown: not in ethtool, pause, fec, phy; link_down_events
 *   fail NAME ERRNO                                   reads end with EIO, EINVAL ... or a number; 0 heals
 *   fail * ERRNO                                      every read of the file's interface does
 *   delay USEC                                        every read of the file's interface takes so much longer
 *   at NS                                             the lines after it in this write count as of this time of
 *                                                     CLOCK_MONOTONIC, which may lie ahead
 *
 * One write is one instant: its lines have one time stamp. When a line is refused, those before it stay done.
 *
 * What fails where: `hw_counters` by name in sysfs (netlink reads all at once and fails with `*`); `counters` by name,
 * with all that one request to the device answers, always as EINVAL; `link` by the name speed (sysfs speed; rate and
 * state of the RDMA port), and with `*` every ethtool call; `ethtool` and `fec` with `*`; `dcb` with `*`, where the
 * kernel leaves PFC out of its answer. Elsewhere the interface cannot fail: the line is refused with EOPNOTSUPP.
 *
 * A driver is reloaded by unbind and bind in /sys/bus/platform/drivers/DRIVER (devices fsnic.0 and fsnic.1): the
 * devices come again with all counters 0.
 */
#include <linux/debugfs.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "fsnic.h"

static char *driver = "mlx5_core";
module_param(driver, charp, 0444);
MODULE_PARM_DESC(driver, "the driver's name");

static char *rdma = "mlx5_%d";
module_param(rdma, charp, 0444);
MODULE_PARM_DESC(rdma, "the RDMA devices' names");

static uint speed = 100000;
module_param(speed, uint, 0444);
MODULE_PARM_DESC(speed, "the links' speed in Mb/s at the start");

static uint pfc = 1 << 3;
module_param(pfc, uint, 0444);
MODULE_PARM_DESC(pfc, "the priorities with PFC at the start, one bit each");

static bool all_pause_names;
module_param(all_pause_names, bool, 0444);
MODULE_PARM_DESC(all_pause_names, "show pause names whether pause is on or not, as some drivers do");

static bool narrow;
module_param(narrow, bool, 0444);
MODULE_PARM_DESC(narrow, "the RDMA port has no 64-bit counters");

/* Where %d stands there is one for each of 0 to 7. */
static char *ethtool_names =
	"rx_packets_phy,tx_packets_phy,rx_bytes_phy,tx_bytes_phy,rx_bits_phy,rx_crc_errors_phy,rx_symbol_err_phy,"
	"rx_pcs_symbol_err_phy,rx_corrected_bits_phy,rx_discards_phy,tx_discards_phy,tx_errors_phy,rx_pause_ctrl_phy,"
	"tx_pause_ctrl_phy,link_down_events_phy,rx_out_of_buffer,dev_out_of_buffer,rx_buffer_passed_thres_phy,"
	"rx_oversize_pkts_buffer,rx_pci_signal_integrity,tx_pci_signal_integrity,outbound_pci_buffer_overflow,"
	"outbound_pci_stalled_rd,outbound_pci_stalled_wr,outbound_pci_stalled_rd_events,"
	"outbound_pci_stalled_wr_events,rx_prio%d_bytes,rx_prio%d_packets,rx_prio%d_buf_discard,"
	"rx_prio%d_cong_discard,rx_prio%d_marked,rx_prio%d_discards,tx_prio%d_bytes,tx_prio%d_packets,rx_prio%d_pause,"
	"rx_prio%d_pause_duration,rx_prio%d_pause_transition,tx_prio%d_pause,tx_prio%d_pause_duration,rx_global_pause,"
	"rx_global_pause_duration,rx_global_pause_transition,tx_global_pause,tx_global_pause_duration,"
	"tx_pause_storm_warning_events,tx_pause_storm_error_events,rx%d_packets,rx%d_bytes,rx%d_buff_alloc_err,"
	"rx%d_wqe_err,tx%d_packets,tx%d_bytes,tx%d_dropped,tx%d_stopped";
module_param(ethtool_names, charp, 0444);
MODULE_PARM_DESC(ethtool_names, "the names of ethtool's statistics, with commas; %d stands for 0 to 7");

static char *hw_names =
	"rx_write_requests,rx_read_requests,rx_atomic_requests,rx_dct_connect,out_of_buffer,out_of_sequence,"
	"duplicate_request,rnr_nak_retry_err,packet_seq_err,implied_nak_seq_err,local_ack_timeout_err,rp_cnp_ignored,"
	"rp_cnp_handled,np_ecn_marked_roce_packets,np_cnp_sent,resp_local_length_error,resp_cqe_error,req_cqe_error,"
	"req_remote_invalid_request,req_remote_access_errors,resp_remote_access_errors,resp_cqe_flush_error,"
	"req_cqe_flush_error,req_transport_retries_exceeded,req_rnr_retries_exceeded,roce_adp_retrans,"
	"roce_adp_retrans_to,roce_slow_restart,roce_slow_restart_cnps,roce_slow_restart_trans,rx_icrc_encapsulated";
module_param(hw_names, charp, 0444);
MODULE_PARM_DESC(hw_names, "the names of hw_counters, with commas");

/* In netlink only. The kernel takes a file's place for its counter's number: those without a file come last. */
#define OPTIONAL_NAMES ",cc_rx_ce_pkts,cc_rx_cnp_pkts,cc_tx_cnp_pkts"

static struct dentry *folder;
static struct platform_device *devices[2];

static int make_groups(struct nic *nic, const char *hw)
{
	const struct {
		const char *file;
		unsigned int may;
		const char *names;
	} rows[GROUPS] = {
		[GROUP_ETHTOOL] = { "ethtool", MAY_HIDE | MAY_FAIL, ethtool_names },
		[GROUP_PAUSE] = { "pause", MAY_HIDE,
				  "tx_pause_frames,rx_pause_frames,tx_pause_storm_events,tx_pause,rx_pause" },
		[GROUP_FEC] = { "fec", MAY_HIDE | MAY_FAIL, "corrected_blocks,uncorrectable_blocks,corrected_bits" },
		[GROUP_PHY] = { "phy", MAY_HIDE, "SymbolErrorDuringCarrier" },
		[GROUP_LINK] = { "link", MAY_HIDE | MAY_FAIL | MAY_FAIL_EACH, "speed,carrier,link_down_events,stuck,hold" },
		[GROUP_DCB] = { "dcb", MAY_FAIL, "pfc_en,pfc_cap" },
		[GROUP_HW] = { "hw_counters", MAY_FAIL | MAY_FAIL_EACH, hw },
		[GROUP_QP] = { "qp_counters", 0, hw },
		[GROUP_PORT] = { "counters", MAY_FAIL | MAY_FAIL_EACH, port_names },
	};
	int error;
	int i;

	for (i = 0; i < GROUPS; i++) {
		struct group *group = &nic->groups[i];

		group->file = rows[i].file;
		group->may = rows[i].may;
		group->nic = nic;
		error = group_init(group, rows[i].names);
		if (error)
			return error;
	}
	if (!all_pause_names)
		ethtool_pause_names(&nic->groups[GROUP_ETHTOOL]);
	counter_set(&nic->groups[GROUP_LINK], LINK_SPEED, speed);
	counter_set(&nic->groups[GROUP_LINK], LINK_CARRIER, 1);
	counter_set(&nic->groups[GROUP_DCB], DCB_PFC_EN, pfc & 0xff);
	counter_set(&nic->groups[GROUP_DCB], DCB_PFC_CAP, PRIORITIES);
	return 0;
}

static void free_nic(struct nic *nic)
{
	int i;

	for (i = 0; i < GROUPS; i++)
		group_free(&nic->groups[i]);
	free_netdev(nic->netdev);
}

static int probe(struct platform_device *platform)
{
	struct net_device *netdev = netdev_make(platform);
	struct nic *nic;
	char *hw;
	int error;

	if (!netdev)
		return -ENOMEM;
	nic = netdev_priv(netdev);
	hw = kasprintf(GFP_KERNEL, "%s" OPTIONAL_NAMES, hw_names);
	error = hw ? make_groups(nic, hw) : -ENOMEM;
	kfree(hw);
	if (error)
		goto free;
	ethtool_init(netdev);
	error = netdev_start(nic);
	if (error)
		goto free;
	error = rdma_start(nic, rdma, narrow);
	if (error)
		goto end_netdev;
	error = health_start(nic);
	if (error)
		goto end_rdma;
	platform_set_drvdata(platform, nic);
	control_add(nic, folder);
	return 0;

end_rdma:
	rdma_end(nic);
end_netdev:
	netdev_end(nic);
free:
	free_nic(nic);
	return error;
}

static void remove(struct platform_device *platform)
{
	struct nic *nic = platform_get_drvdata(platform);

	debugfs_remove(nic->folder);
	health_end(nic);
	rdma_end(nic);
	netdev_end(nic);
	free_nic(nic);
}

/* The devices are found by this name, whatever the driver is called. */
static const struct platform_device_id ids[] = { { .name = "fsnic" }, {} };

static struct platform_driver platform_driver = {
	.driver = { .owner = THIS_MODULE },
	.id_table = ids,
	.probe = probe,
/* Its result went in two steps. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	.remove_new = remove,
#else
	.remove = remove,
#endif
};

static void undo(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(devices); i++)
		if (!IS_ERR_OR_NULL(devices[i]))
			platform_device_unregister(devices[i]);
	platform_driver_unregister(&platform_driver);
	debugfs_remove(folder);
}

static int __init start(void)
{
	int error;
	int i;

	platform_driver.driver.name = driver;
	folder = debugfs_create_dir("fsnic", NULL);
	error = platform_driver_register(&platform_driver);
	if (error) {
		debugfs_remove(folder);
		return error;
	}
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		devices[i] = platform_device_register_simple("fsnic", i, NULL, 0);
		error = PTR_ERR_OR_ZERO(devices[i]);
		/* A probe that failed shows only in the missing driver. */
		if (!error && !devices[i]->dev.driver)
			error = -ENODEV;
		if (error) {
			undo();
			return error;
		}
	}
	return 0;
}

static void __exit end(void)
{
	undo();
}

module_init(start);
module_exit(end);
MODULE_DESCRIPTION("a NIC for the lab, with counters that are set");
MODULE_LICENSE("GPL");
