//! A trial: how a sampler attaches on this kernel, tried on a device that nobody uses.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use analysis::series::DurationNs;
use anyhow::{Context as _, anyhow, bail};

use super::{Clock, Marks, Means, Options, Sampler};

/// The loopback device of a new network namespace.
const LOOPBACK: (u32, &str) = (1, "lo");

/// Buckets of its rings: hardly any.
const SLOTS: u32 = 16;

/// Attaches a sampler to the loopback device of a network namespace made for that, and lets it go: by which means it
/// was attached.
///
/// # Errors
///
/// If the namespace cannot be made, which takes `CAP_SYS_ADMIN`, or the sampler cannot be attached.
pub(crate) fn trial() -> anyhow::Result<Means> {
    in_new_namespace(|| {
        let [means, _] = Sampler::attach(&options(false))?.means();
        Ok(means)
    })
}

/// How long a tick of a millisecond may take to come a few times, on a host that is busy.
const TICK_LIMIT: Duration = Duration::from_secs(1);

/// The same by a tick: whether the kernel takes it, and it comes.
///
/// # Errors
///
/// As of [`trial`], or if no tick comes.
pub(crate) fn trial_tick() -> anyhow::Result<()> {
    in_new_namespace(|| {
        let sampler = Sampler::attach(&Options { clock: Clock::Tick, ..options(false) })?;
        let end = Instant::now() + TICK_LIMIT;
        while sampler.rings().ticking().is_none_or(|ticking| ticking.ticks < 3) {
            if Instant::now() >= end {
                bail!("the kernel took the timer, and it did not come");
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })
}

fn options(clsact: bool) -> Options {
    let (ifindex, netdev) = (LOOPBACK.0, LOOPBACK.1.to_owned());
    let (interval, regions) = (DurationNs(1_000_000), Vec::new());
    let (clock, marks) = (Clock::Read, Marks::Ignored);
    Options { ifindex, netdev, interval, clock, slots: SLOTS, clsact, suspected: false, sketch: true, marks, regions }
}

/// Runs this on a thread in a network namespace of its own, which goes with the thread.
fn in_new_namespace<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let run = || {
            // SAFETY: a system call without pointers; it changes this thread, which is ours, and nothing else.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            if made != 0 {
                let error = io::Error::last_os_error();
                return Err(error).context("no network namespace to try it in (this needs CAP_SYS_ADMIN)");
            }
            work()
        };
        scope.spawn(run).join().unwrap_or_else(|_| Err(anyhow!("the trial's thread has panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::super::netlink::Netlink;
    use super::*;

    /// Runs it, where tests may load programs.
    #[track_caller]
    fn try_it(work: impl FnOnce() -> anyhow::Result<()> + Send) {
        if rustix::process::geteuid().is_root() {
            in_new_namespace(work).unwrap();
        } else {
            println!("this test loads programs into the kernel, for which it must run as root");
        }
    }

    /// Whether the kernel still has a program of this number.
    fn is_loaded(program: u32) -> bool {
        aya::programs::loaded_programs().filter_map(Result::ok).any(|one| one.id() == program)
    }

    #[test]
    fn samplers_of_one_process_share_a_device_as_far_as_there_is_room() {
        try_it(|| {
            let filters = || Netlink::open()?.filters(LOOPBACK.0);
            let mut samplers = Vec::new();
            for count in 1..=4 {
                samplers.push(Sampler::attach(&options(true))?);
                assert_eq!(filters()?.len(), 2 * count);
            }
            let refused = format!("{:#}", Sampler::attach(&options(true)).unwrap_err());
            assert!(refused.contains("priorities from 1 to 4") && refused.contains("tc filter show"), "{refused}");
            assert!(samplers.iter().all(Sampler::stands));
            // The one that made the queueing discipline goes first; the last one takes it along.
            samplers.remove(0);
            assert_eq!(filters()?.len(), 6);
            samplers.push(Sampler::attach(&options(true))?);
            assert!(samplers.iter().all(Sampler::stands));
            drop(samplers);
            assert_eq!(filters()?.len(), 0);
            assert!(Netlink::open()?.add_clsact(LOOPBACK.0)?, "a queueing discipline is left");
            Ok(())
        });
    }

    #[test]
    fn a_sampler_knows_when_its_filters_are_taken_away() {
        try_it(|| {
            let sampler = Sampler::attach(&options(true))?;
            assert!(sampler.stands());
            Netlink::open()?.remove_clsact(LOOPBACK.0)?;
            assert!(!sampler.stands());
            Ok(())
        });
    }

    #[test]
    fn a_tick_begins_buckets_one_after_the_other_and_ends_with_the_sampler() {
        try_it(|| {
            trial_tick()?;
            let mut sampler = Sampler::attach(&Options { clock: Clock::Tick, ..options(false) })?;
            let program = sampler.tick_program()?;
            assert!(is_loaded(program));
            // The timer may be at it on another processor: what two looks agree on is whole.
            let look = || sampler.rings().ticking().unwrap();
            let state = || loop {
                let one = look();
                thread::yield_now();
                if one == look() {
                    break one;
                }
            };
            let first = state();
            let end = Instant::now() + TICK_LIMIT;
            while state().ticks < first.ticks + u64::from(SLOTS) {
                assert!(Instant::now() < end, "{:?}", state());
                thread::yield_now();
            }
            let last = state();
            // What the ring still knows, in order, each within the interval of its number.
            let known: Vec<(u64, u64)> = (first.current..=last.current)
                .filter_map(|sequence| Some((sequence, sampler.rings().tick(sequence)?)))
                .collect();
            assert!(known.len() > 2 && known.is_sorted(), "{known:?}");
            assert!(known.iter().all(|(sequence, start_ns)| start_ns / 1_000_000 == *sequence), "{known:?}");
            // Each number had its tick or was missed.
            let numbers = last.current - first.current;
            assert_eq!(numbers, last.ticks - first.ticks + last.missed - first.missed, "{first:?} {last:?}");
            drop(sampler);
            let end = Instant::now() + TICK_LIMIT;
            while is_loaded(program) {
                assert!(Instant::now() < end, "the timer is left");
                thread::yield_now();
            }
            Ok(())
        });
    }

    #[test]
    fn the_trial_says_by_which_means() {
        try_it(|| {
            let means = trial()?;
            let sampler = Sampler::attach(&options(false))?;
            assert_eq!(sampler.means(), [means.clone(), means]);
            assert!(sampler.stands());
            Ok(())
        });
    }
}
