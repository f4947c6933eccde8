//! The lab's NIC with settable counters: the functions that scripts use it with, and what its files say, as truth.
//!
//! `xtask/src/lab/modules/nic/main.c` says what can be set and how. A scenario with `modules: true` finds it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

/// Functions of every script. Ends are 0 (fsnic0, mlx5_0) and 1 (fsnic1, mlx5_1); both begin in one name space.
///
/// - `nic_load [PARAMETER=VALUE]...` loads it and waits for the link.
/// - `nic END FILE LINE...` sets lines in one write, so at one instant.
/// - `nic_health END MESSAGE` has the health reporter of its devlink device report; it recovers unless `!` comes first.
/// - `nic_state END FILE` prints what [`state`] reads.
/// - `nic_reload END` has the driver leave the end and take it again.
/// - `nic_apart` puts end 1 into the name space `far`, with 10.99.0.2; end 0 has 10.99.0.1.
pub const FUNCTIONS: &str = r#"nic_driver() { basename $(readlink /sys/bus/platform/devices/fsnic.$1/driver); }
nic_load() {
    modprobe -a ib_uverbs && insmod /mnt/out/fsnic.ko "$@" && ip link set fsnic0 up && ip link set fsnic1 up &&
        until_true '[ "$(cat /sys/class/net/fsnic0/carrier)" = 1 ]'
}
# A shell's own printf writes each line by itself.
nic() { nic_file=/sys/kernel/debug/fsnic/fsnic$1/$2; shift 2; cat <<< "$(printf '%s\n' "$@")" > $nic_file; }
nic_health() { echo "$2" > /sys/kernel/debug/fsnic/fsnic$1/health; }
nic_state() { cat /sys/kernel/debug/fsnic/fsnic$1/$2; }
nic_reload() {
    nic_folder=/sys/bus/platform/drivers/$(nic_driver $1)
    echo fsnic.$1 > $nic_folder/unbind && echo fsnic.$1 > $nic_folder/bind && ip link set fsnic$1 up
}
nic_apart() {
    ip netns add far && ip link set fsnic1 netns far && ip address add 10.99.0.1/24 dev fsnic0 &&
        ip -n far address add 10.99.0.2/24 dev fsnic1 && ip -n far link set fsnic1 up &&
        until_true '[ "$(cat /sys/class/net/fsnic0/carrier)" = 1 ]'
}
"#;

/// The columns of a file of the NIC.
const COLUMNS: usize = 13;
/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// A counter as the NIC has it, whatever its readers see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The driver's name of it.
    pub name: String,
    /// The value at `now_ns`.
    pub value: u64,
    /// When the file was read, CLOCK_MONOTONIC: one time for all counters of a file.
    pub now_ns: u64,
    /// When it was last set, CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// The value at `since_ns`, before wrapping.
    pub base: u64,
    /// Growth in each millisecond.
    pub per_ms: u64,
    /// It grows for the first so many milliseconds of each period.
    pub on_ms: u64,
    /// The period in milliseconds.
    pub period_ms: u64,
    /// It grows no longer after so many milliseconds; 0: it goes on.
    pub for_ms: u64,
    /// Its width.
    pub bits: u32,
    /// Whether it stays at its greatest value instead of wrapping.
    pub saturates: bool,
    /// Whether readers do not see it.
    pub hidden: bool,
    /// The error that reads of it end with; 0: none.
    pub error: i32,
}

impl Counter {
    /// The value at a time of CLOCK_MONOTONIC in nanoseconds; before `since_ns` it is that of `since_ns`.
    #[must_use]
    pub fn at(&self, ns: u64) -> u64 {
        let mut elapsed = ns.saturating_sub(self.since_ns);
        if self.for_ms > 0 {
            elapsed = elapsed.min(self.for_ms * MS);
        }
        let period = (self.period_ms * MS).max(1);
        let on = self.on_ms * MS;
        let active = elapsed / period * on + (elapsed % period).min(on);
        let grown = active / MS * self.per_ms + active % MS * self.per_ms / MS;
        let value = self.base.wrapping_add(grown);
        let greatest = if self.bits < 64 { (1 << self.bits) - 1 } else { u64::MAX };
        if self.saturates { value.min(greatest) } else { value & greatest }
    }
}

/// Reads a file of the NIC.
///
/// # Errors
/// When a line has other columns: it is named.
pub fn state(text: &str) -> Result<BTreeMap<String, Counter>> {
    let counter = |line: &str| counter(line).with_context(|| format!("not a counter: {line}"));
    text.lines().skip(1).map(|line| counter(line).map(|counter| (counter.name.clone(), counter))).collect()
}

fn counter(line: &str) -> Result<Counter> {
    let cells: Vec<_> = line.split('\t').collect();
    ensure!(cells.len() == COLUMNS, "{} columns", cells.len());
    let number = |index: usize| -> Result<u64> { Ok(cells[index].parse()?) };
    Ok(Counter {
        name: cells[0].to_owned(),
        value: number(1)?,
        now_ns: number(2)?,
        since_ns: number(3)?,
        base: number(4)?,
        per_ms: number(5)?,
        on_ms: number(6)?,
        period_ms: number(7)?,
        for_ms: number(8)?,
        bits: number(9)?.try_into()?,
        saturates: number(10)? == 1,
        hidden: number(11)? == 1,
        error: number(12)?.try_into()?,
    })
}

/// The lines `name: value` of what `ethtool` prints; other lines are left out.
#[must_use]
pub fn statistics(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (name, value) = line.trim().rsplit_once(": ")?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "name\tvalue\tnow_ns\tsince_ns\tbase\tper_ms\ton_ms\tperiod_ms\tfor_ms\tbits\tsaturates\thidden\terror";

    #[track_caller]
    fn check(settings: &str, ns: u64, expected: u64) {
        let text = format!("{HEADER}\nx\t0\t0\t{settings}\t0\t0\n");
        assert_eq!(state(&text).unwrap()["x"].at(ns), expected, "{settings} at {ns}");
    }

    #[test]
    fn a_counter_grows_while_it_is_told_to() {
        check("5\t7\t0\t0\t0\t0\t64\t0", 9, 7);
        check("5000000\t7\t1000\t1\t1\t0\t64\t0", 4_000_000, 7);
        check("5000000\t7\t1000\t1\t1\t0\t64\t0", 6_500_000, 1507);
        check("5000000\t7\t1000\t1\t1\t3\t64\t0", 900_000_000, 3007);
    }

    #[test]
    fn a_pulse_grows_in_the_first_part_of_each_period() {
        check("0\t0\t1000\t20\t100\t0\t64\t0", 20_000_000, 20_000);
        check("0\t0\t1000\t20\t100\t0\t64\t0", 99_000_000, 20_000);
        check("0\t0\t1000\t20\t100\t0\t64\t0", 110_000_000, 30_000);
    }

    #[test]
    fn beyond_its_width_it_wraps_or_stays() {
        check("0\t300\t0\t0\t0\t0\t8\t0", 1, 44);
        check("0\t300\t0\t0\t0\t0\t8\t1", 1, 255);
        check("0\t18446744073709551615\t1\t1\t1\t0\t64\t0", 2_000_000, 1);
    }

    #[test]
    fn what_is_no_counter_is_named() {
        let error = state(&format!("{HEADER}\nx\t1\n")).unwrap_err();
        assert!(format!("{error:#}").contains("x\t1"), "{error:#}");
    }

    #[test]
    fn statistics_are_the_lines_with_a_number() {
        let text =
            "NIC statistics:\n     rx_prio3_pause: 77\n     odd: name: 5\n  Speed: 100Mb/s\nLink Down Events: 3\n";
        let expected = [("rx_prio3_pause", 77), ("odd: name", 5), ("Link Down Events", 3)];
        assert_eq!(statistics(text), expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
