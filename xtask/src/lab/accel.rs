//! Whether machines run in hardware: only where a probe boot proved it, since the device file alone proves nothing.

use std::fs::{self, File};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cache;
use super::machine::Accel;

/// A boot in hardware takes a second or two; where it does not work, it takes for ever.
const PROBE_LIMIT: Duration = Duration::from_secs(15);

/// Says how machines run, from the remembered answer for this host or else by `boots`, which is asked once.
///
/// # Errors
/// When the answer cannot be kept.
pub(super) fn choose(boots: impl FnOnce(Accel, Duration) -> bool) -> Result<Accel> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(Accel::Tcg);
    }
    let host = host();
    let path = cache::folder()?.join("accel");
    let lock = File::create(path.with_added_extension("lock")).context("lock the cache")?;
    lock.lock().context("lock the cache")?;
    if let Some(accel) = fs::read_to_string(&path).ok().and_then(|text| recall(&text, &host)) {
        return Ok(accel);
    }
    eprintln!("lab: trying hardware virtualisation, once, for {} s at most", PROBE_LIMIT.as_secs());
    let (accel, word) = if boots(Accel::Kvm, PROBE_LIMIT) { (Accel::Kvm, "kvm") } else { (Accel::Tcg, "tcg") };
    eprintln!("lab: machines run with {word}");
    fs::write(&path, format!("{word} {host}\n")).context("keep the answer")?;
    Ok(accel)
}

/// The kept answer, if it is about this host.
fn recall(text: &str, host: &str) -> Option<Accel> {
    match text.trim_end().split_once(' ')? {
        ("kvm", of) if of == host => Some(Accel::Kvm),
        ("tcg", of) if of == host => Some(Accel::Tcg),
        _ => None,
    }
}

/// What the answer depends on: the host's kernel and processor.
fn host() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    format!("{} {}", read("/proc/sys/kernel/osrelease").trim(), model.trim_start_matches([' ', '\t', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_its_host_only() {
        for (text, expected) in [
            ("kvm 6.1 cpu x\n", Some(Accel::Kvm)),
            ("tcg 6.1 cpu x\n", Some(Accel::Tcg)),
            ("kvm 6.2 cpu x\n", None),
            ("maybe 6.1 cpu x\n", None),
            ("", None),
        ] {
            assert_eq!(recall(text, "6.1 cpu x"), expected, "{text}");
        }
    }
}
