//! Every metric, one row each. The page, the documentation and the tests walk it.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows, until the agent restarts. Its name ends in `_total`.
    Counter,
    /// Goes up and down, or says 1 for what its labels say.
    Gauge,
    /// Counts by size, with a sum.
    Histogram,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The full name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) kind: Kind,
    /// Its labels, in order.
    pub(crate) labels: &'static [&'static str],
    /// One sentence for whoever reads the page.
    pub(crate) help: &'static str,
}

macro_rules! table {
    ($($metric:ident, $kind:ident, $name:literal, [$($label:literal),*], $help:literal;)*) => {
        /// The metrics by name. Where there are too many series, those of the last are left out first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Metric {
            $(#[doc = $help] $metric,)*
        }

        /// Every metric.
        pub(crate) const TABLE: &[Row] = &[
            $(Row {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            },)*
        ];
    };
}

table! {
    BuildInfo, Gauge, "fabricscope_build_info", ["version"],
        "The agent's version; always 1.";
    HostInfo, Gauge, "fabricscope_host_info", ["kernel", "boot_id"],
        "The kernel's release and the id of this boot; always 1.";
    SeriesDropped, Gauge, "fabricscope_metrics_series_dropped", [],
        "Series left out of this page because there would be too many.";
    EventsLost, Counter, "fabricscope_events_lost_total", ["program", "stage", "reason"],
        "Events, calls and requests that were lost, by who lost them, where and why. 0 means that what is shown is complete.";
    VerbsFailures, Counter, "fabricscope_verbs_failures_total", ["device", "verb"],
        "Verbs calls that failed. There from 0 for what applications use; further verbs of a device may share verb=\"other\". Without a device for rdma_cm.";
    FindingsFiring, Gauge, "fabricscope_findings_firing", ["finding"],
        "On how many ports, priorities or kinds of objects a finding fires, of all that are looked at; from the first reading on.";
    Finding, Gauge, "fabricscope_finding", ["device", "port", "netdev", "priority", "object", "finding"],
        "1 if the finding fires, 0 if it is known not to. Absent where it cannot be told, and where there is nothing to look at.";
    VectorSkew, Gauge, "fabricscope_cq_vector_skew_ratio", ["device"],
        "Completion queues made on the busiest completion vector over the mean of all vectors, since the agent began: 1 if they are evenly spread, the number of vectors if all are on one.";
    FindingUnknown, Gauge, "fabricscope_finding_unknown", ["device", "port", "netdev", "priority", "object", "finding", "why"],
        "A finding that cannot be told at the moment, and why; always 1.";
    VerbsErrors, Counter, "fabricscope_verbs_errors_total", ["device", "verb", "layer", "errno"],
        "Verbs calls that failed, by the innermost layer that gave the call's error.";
    HookAttached, Gauge, "fabricscope_hook_attached", ["hook"],
        "1 if the hook runs, 0 if it does not though it is wanted.";
    HookQuarantined, Gauge, "fabricscope_hook_quarantined", ["hook"],
        "1 if the hook came and went too often and is left alone for a while, 0 if not; absent for one that was attached once and stayed.";
    RdmaPortInfo, Gauge, "fabricscope_rdma_port_info", ["device", "port", "netdev", "pci", "driver", "fw", "link_layer", "protocol", "pf", "vf"],
        "An RDMA port and what it belongs to, the physical function and the number of a virtual one too; always 1.";
    NicInfo, Gauge, "fabricscope_nic_info", ["device", "netdev", "driver", "pci", "pf", "vf", "bond", "namespace"],
        "A device whose counters are read and what it belongs to: an RDMA device or a network device and its driver, the physical function of a virtual one, a bond, a network namespace that is not the agent's; always 1.";
    PfcPauseFrames, Counter, "fabricscope_pfc_pause_frames_total", ["netdev", "priority", "direction"],
        "Priority pause frames. rx pause: the network cannot take what this host sends. tx pause: this host cannot take what the network sends.";
    PfcPauseSeconds, Counter, "fabricscope_pfc_pause_seconds_total", ["netdev", "priority", "direction"],
        "Time a priority was paused, in seconds. rx pause: the network cannot take what this host sends. tx pause: this host cannot take what the network sends.";
    CounterSaturated, Gauge, "fabricscope_counter_saturated", ["device", "port", "counter"],
        "1 for a counter that stands at the end of its range and counts no more until it is cleared; it is served nowhere else.";
    CounterFailures, Counter, "fabricscope_nic_read_failures_total", ["device", "reason"],
        "How often a NIC or RDMA counter could not be read.";
    CounterQuarantined, Gauge, "fabricscope_nic_quarantined", ["device"],
        "1 for a device that answered with errors, so that its counters are left alone for a while.";
    CounterDuration, Gauge, "fabricscope_nic_read_duration_seconds", ["source"],
        "How long the last full reading of the counters took, in seconds.";
    CounterPace, Gauge, "fabricscope_nic_read_pace_seconds", [],
        "The time from one full reading of the counters to the next, in seconds; more than configured where reading is slow.";
    CounterDevices, Gauge, "fabricscope_nic_devices", ["kind"],
        "Devices whose counters are read: RDMA's and the network's. 0 where there is no such hardware.";
    FastPace, Gauge, "fabricscope_nic_sample_pace_seconds", ["device", "port", "source"],
        "The time from one fast reading of a device's counters to the next, in seconds; more than configured where reading is slow.";
    FastReadings, Counter, "fabricscope_nic_sample_readings_total", ["device", "port", "source"],
        "Fast readings of a device's counters.";
    FastTime, Counter, "fabricscope_nic_sample_read_seconds_total", ["device", "port", "source"],
        "How long fast readings of a device's counters took, in seconds.";
    VerbsCalls, Counter, "fabricscope_verbs_calls_total", ["device", "verb"],
        "Verbs calls that returned, whatever they returned. Further verbs of a device may share verb=\"other\".";
    MrRegistrations, Counter, "fabricscope_mr_registrations_total", ["device", "kind"],
        "Memory regions registered: kind=\"host\" by reg_mr (on-demand paging included), kind=\"dmabuf\" by reg_dmabuf_mr, as GPUDirect does.";
    InflightOldest, Gauge, "fabricscope_verbs_inflight_oldest_seconds", [],
        "For how long the oldest verbs call that has not returned is under way, in seconds; 0 if there is none.";
    NetdevSampled, Gauge, "fabricscope_netdev_sampled", ["netdev"],
        "1 if the network device is sampled, 0 if it is not though it is wanted.";
    NetdevInfo, Gauge, "fabricscope_netdev_info", ["netdev", "layer", "rx", "tx"],
        "A sampled network device, at which layer of the host's stack of devices its packets are counted, and how the programs are attached; always 1.";
    NetdevLineRate, Gauge, "fabricscope_netdev_line_rate_bytes", ["netdev"],
        "The line rate in each direction, in bytes a second, as the device states it or the configuration. Absent where neither does: then there are no bursts.";
    NetdevBytes, Counter, "fabricscope_netdev_bytes_total", ["netdev", "direction"],
        "Bytes on the wire that passed the kernel's stack (tc), without preamble and frame check sequence. RDMA that the NIC handles by itself is not among them.";
    NetdevPackets, Counter, "fabricscope_netdev_packets_total", ["netdev", "direction"],
        "Packets on the wire that passed the kernel's stack (tc): segments of what it handles as one.";
    NetdevRetransmits, Counter, "fabricscope_netdev_retransmitted_bytes_total", ["netdev", "direction"],
        "TCP payload bytes sent again (tx), or suspected of it (rx, where that is looked for).";
    NetdevRetransmitSegments, Counter, "fabricscope_netdev_retransmitted_segments_total", ["netdev", "direction"],
        "TCP segments with payload sent again (tx), or suspected of it (rx, where that is looked for).";
    NetdevMarked, Counter, "fabricscope_netdev_marked_bytes_total", ["netdev", "direction"],
        "TCP payload bytes that carry the mark of what was sent again: given here (tx), or received (rx). Only where bursts.mark_retransmits is on.";
    NetdevMarkedSegments, Counter, "fabricscope_netdev_marked_segments_total", ["netdev", "direction"],
        "TCP segments that carry the mark of what was sent again: given here (tx), or received (rx). Only where bursts.mark_retransmits is on.";
    NetdevCeBytes, Counter, "fabricscope_netdev_ce_bytes_total", ["netdev", "direction"],
        "Bytes of packets that carry the mark \"congestion experienced\" (ECN CE).";
    NetdevCePackets, Counter, "fabricscope_netdev_ce_packets_total", ["netdev", "direction"],
        "Packets on the wire that carry the mark \"congestion experienced\" (ECN CE).";
    Bursts, Counter, "fabricscope_bursts_total", ["netdev", "direction"],
        "Bursts that have ended: runs of buckets above the configured share of line rate.";
    BurstTime, Counter, "fabricscope_burst_seconds_total", ["netdev", "direction"],
        "How long these bursts took, in seconds.";
    NetdevPeak, Gauge, "fabricscope_netdev_peak_utilisation_ratio", ["netdev", "direction"],
        "The share of line rate in the fullest bucket of the last 15 seconds.";
    BucketsLost, Counter, "fabricscope_netdev_buckets_lost_total", ["netdev"],
        "Time buckets that were overwritten before the agent read them, or found its queue full. 0 means that what is shown is complete.";
    MarksRetransmits, Gauge, "fabricscope_tcp_retransmits_marked", [],
        "1 if this host marks the TCP segments that it sends again (bursts.mark_retransmits), which changes packets; 0 if not.";
    TcpRetransmits, Counter, "fabricscope_tcp_retransmit_events_total", [],
        "Times that TCP sent something again, as the kernel's own tracepoint tells, all network namespaces together.";
    TcpRetransmitSegments, Counter, "fabricscope_tcp_retransmit_segments_total", [],
        "TCP segments that it sent again then, those without payload (SYN, FIN) too.";
    TcpRetransmitBytes, Counter, "fabricscope_tcp_retransmit_bytes_total", [],
        "Payload bytes of these segments.";
    TcpRetransmitFailures, Counter, "fabricscope_tcp_retransmit_failures_total", [],
        "Times that TCP tried to send something again and could not; absent where the kernel's tracepoint does not tell.";
    CmEvents, Counter, "fabricscope_cm_events_total", ["event"],
        "Events of the RDMA connection manager.";
    DeviceEvents, Counter, "fabricscope_device_events_total", ["device", "port", "event"],
        "Asynchronous events of RDMA devices; without a port for those of queues.";
    RdmaResources, Gauge, "fabricscope_rdma_resources", ["device", "type"],
        "Objects that an RDMA device holds, by type.";
    RdmaResourceLimit, Gauge, "fabricscope_rdma_resource_limit", ["device", "type"],
        "The most objects of a type that an RDMA device can hold; absent where the kernel does not tell.";
    HealthEvents, Counter, "fabricscope_health_events_total", ["device", "netdev", "pci", "event", "reporter"],
        "What drivers and the kernel say about a NIC that is not well, as far as it can be told of which.";
    ReporterErrors, Counter, "fabricscope_health_reporter_errors_total", ["device", "netdev", "pci", "reporter"],
        "Errors that a devlink health reporter of an adapter has reported.";
    ReporterRecoveries, Counter, "fabricscope_health_reporter_recoveries_total", ["device", "netdev", "pci", "reporter"],
        "How often a devlink health reporter has recovered.";
    ReporterHealthy, Gauge, "fabricscope_health_reporter_healthy", ["device", "netdev", "pci", "reporter"],
        "1 if a devlink health reporter is well, 0 if it has reported an error and not recovered.";
    ReporterDumpTime, Gauge, "fabricscope_health_reporter_dump_time_seconds", ["device", "netdev", "pci", "reporter"],
        "When a devlink health reporter took the dump that it keeps, in seconds since 1970; absent where there is none.";
    NapiExhausted, Counter, "fabricscope_napi_budget_exhausted_total", ["netdev"],
        "Polls of a network device, without a netdev of a CPU's own backlog, after which more packets wait.";
    DroppedPackets, Counter, "fabricscope_dropped_packets_total", ["netdev", "reason"],
        "Packets that the kernel threw away; without a netdev for those that were on none.";
    ProbeRejections, Counter, "fabricscope_verbs_probe_rejections_total", ["device", "verb"],
        "Verbs calls that only asked what there is, and were refused: no failures.";
    HookTransitions, Counter, "fabricscope_hook_transitions_total", ["hook"],
        "How often the hook was attached or detached; absent for one that was attached once and stayed.";
    HookInfo, Gauge, "fabricscope_hook_info", ["hook", "layer", "function", "attach"],
        "Where a running hook stands, which kernel function it took and by which means; always 1.";
    CallDuration, Histogram, "fabricscope_verbs_call_duration_seconds", ["verb"],
        "How long successful life-cycle calls took, in seconds, all devices together.";
    RdmaGidInfo, Gauge, "fabricscope_rdma_gid_info", ["device", "port", "index", "type", "netdev", "gid"],
        "A GID in use (four of each device at most), by the index that applications name; always 1.";
    BurstLength, Histogram, "fabricscope_burst_length_seconds", ["direction"],
        "How long bursts took, in seconds, all network devices together.";
    BurstVolume, Histogram, "fabricscope_burst_volume_bytes", ["direction"],
        "How many bytes bursts had, all network devices together.";
    BurstDrains, Counter, "fabricscope_burst_drains_total", [],
        "How often the rings of all sampled network devices were read.";
    BurstDrainTime, Counter, "fabricscope_burst_drain_seconds_total", [],
        "How long reading the rings took, in seconds.";
    BurstTicks, Counter, "fabricscope_burst_ticks_total", [],
        "Ticks of all sampled network devices, where bursts.clock is \"tick\".";
    BurstTicksMissed, Counter, "fabricscope_burst_ticks_missed_total", [],
        "Buckets that had no tick, since it came too late: the one before was that much longer.";
    ClockSteps, Counter, "fabricscope_clock_steps_total", [],
        "How often the wall clock was set while network devices were sampled: times of buckets around then may be wrong.";
    RecorderBytes, Gauge, "fabricscope_recorder_bytes", ["place"],
        "Bytes of samples of network devices that are kept, in memory and on the disk.";
    RecorderFiles, Gauge, "fabricscope_recorder_files", [],
        "Files of samples on the disk.";
    RecorderState, Gauge, "fabricscope_recorder_state", ["state"],
        "What the recorder of samples is doing: recording, memory_only, disk_full or disk_refuses; always 1.";
    LogEvicted, Counter, "fabricscope_log_signatures_evicted_total", [],
        "Kinds of failure whose folding in the log ended early to make room for others.";
    RunCount, Counter, "fabricscope_program_run_count_total", ["program"],
        "How often the kernel side's programs ran for all their hooks, while that was measured.";
    RunTime, Counter, "fabricscope_program_run_time_seconds_total", ["program"],
        "How long the kernel side's programs ran for all their hooks, in seconds, while that was measured.";
}

/// The last row whose series are kept before those of the counters' catalogue where there are too many.
pub(crate) const BEFORE_COUNTERS: Metric = Metric::FastTime;

impl Metric {
    /// Its row.
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_rules() {
        let names: BTreeSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert_eq!(Metric::RunTime.row().name, TABLE.last().expect("a row").name);
        for row in TABLE {
            assert!(row.name.starts_with("fabricscope_") && row.help.ends_with('.'), "{}", row.name);
            assert_eq!(row.kind == Kind::Counter, row.name.ends_with("_total"), "{}", row.name);
            assert!(row.labels.len() <= 10 && !row.labels.contains(&"le"), "{}", row.name);
        }
    }
}
