//! A trial: how a sampler attaches on this kernel, tried on a device that nobody uses.

use std::io;
use std::thread;

use analysis::series::DurationNs;
use anyhow::{Context as _, anyhow};

use super::{Marks, Means, Options, Sampler};

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

fn options(clsact: bool) -> Options {
    let (ifindex, netdev) = (LOOPBACK.0, LOOPBACK.1.to_owned());
    let (interval, regions) = (DurationNs(1_000_000), Vec::new());
    let marks = Marks::Ignored;
    Options { ifindex, netdev, interval, slots: SLOTS, clsact, suspected: false, sketch: true, marks, regions }
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
