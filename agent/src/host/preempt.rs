//! How the kernel preempts, and which return hook can be trusted under it.

/// The preemption model. What the text does not tell apart stays together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Preempt {
    /// Never inside the kernel.
    None,
    /// Only where the kernel offers it.
    Voluntary,
    /// Built without preemption: `None` or `Voluntary`.
    NoneOrVoluntary,
    /// Anywhere.
    Full,
    /// Anywhere, but most tasks only at the tick.
    Lazy,
    /// PREEMPT_RT.
    RealTime,
    /// Built with preemption that is chosen at boot, and the choice cannot be seen.
    #[default]
    Unknown,
}

impl Preempt {
    /// Whether a task can lose its CPU while it is inside a BPF program. Absent if not known.
    pub(crate) fn preempts(self) -> Option<bool> {
        match self {
            Self::None | Self::Voluntary | Self::NoneOrVoluntary => Some(false),
            Self::Full | Self::Lazy | Self::RealTime => Some(true),
            Self::Unknown => None,
        }
    }

    /// The word for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::NoneOrVoluntary => "none or voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
            Self::RealTime => "PREEMPT_RT",
            Self::Unknown => "unknown",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "voluntary" => Some(Self::Voluntary),
            "full" => Some(Self::Full),
            "lazy" => Some(Self::Lazy),
            _ => None,
        }
    }
}

/// The model, from what may be readable: `sched/preempt` of debugfs (`none voluntary (full) lazy`), /proc/version
/// (words from init/Makefile; PREEMPT_RT replaces PREEMPT_DYNAMIC there) and /proc/cmdline (`preempt=full`, read
/// by kernels with PREEMPT_DYNAMIC). The command line counts only where the running choice cannot be read.
pub(crate) fn model(sched_preempt: Option<&str>, version: Option<&str>, cmdline: Option<&str>) -> Preempt {
    let version_has = |word: &str| version.is_some_and(|text| text.split_ascii_whitespace().any(|w| w == word));
    if version_has("PREEMPT_RT") {
        return Preempt::RealTime;
    }
    let running = sched_preempt.and_then(bracketed).and_then(Preempt::of_word);
    if let Some(model) = running {
        return model;
    }
    if version_has("PREEMPT_DYNAMIC") {
        let mut words = cmdline.unwrap_or_default().split_ascii_whitespace().rev();
        let asked = words.find_map(|word| word.strip_prefix("preempt="));
        return asked.and_then(Preempt::of_word).unwrap_or(Preempt::Unknown);
    }
    match version {
        // Full or lazy: both preempt, and without PREEMPT_DYNAMIC nothing readable tells which.
        Some(_) if version_has("PREEMPT") => Preempt::Full,
        Some(text) if text.starts_with("Linux version ") => Preempt::NoneOrVoluntary,
        _ => Preempt::Unknown,
    }
}

/// The word in brackets of a list of choices, `none (full)` or `[none] integrity`.
pub(crate) fn bracketed(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().find_map(|word| {
        word.strip_prefix('(')
            .and_then(|word| word.strip_suffix(')'))
            .or_else(|| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')))
    })
}

/// How the return of a system call's function can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturnHook {
    /// A tracefs return probe with a large pool of instances: misses nothing under any model.
    TracefsReturn,
    /// fexit: cheapest; skips calls while another task is preempted inside the same program on that CPU.
    Fexit,
    /// A return probe of the kprobe PMU: about max(10, 2 × CPUs) calls at a time, those over that are missed.
    Kretprobe,
}

impl ReturnHook {
    /// The word for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TracefsReturn => "tracefs return probe",
            Self::Fexit => "fexit",
            Self::Kretprobe => "kretprobe",
        }
    }
}

/// The hook to use for the returns that must be exact. fexit is for kernels known not to preempt; where the model
/// is unknown it may skip, so the exact probe goes first. Absent if the kernel offers none of the three.
pub(crate) fn return_hook(preempt: Preempt, tracefs: bool, fexit: bool, kprobe: bool) -> Option<ReturnHook> {
    let by_rank = if preempt.preempts() == Some(false) {
        [(fexit, ReturnHook::Fexit), (tracefs, ReturnHook::TracefsReturn), (kprobe, ReturnHook::Kretprobe)]
    } else {
        [(tracefs, ReturnHook::TracefsReturn), (fexit, ReturnHook::Fexit), (kprobe, ReturnHook::Kretprobe)]
    };
    by_rank.into_iter().find_map(|(usable, hook)| usable.then_some(hook))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "Linux version 6.12.48 (gcc 14) #1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1";

    #[track_caller]
    fn check(sched: Option<&str>, version: Option<&str>, cmdline: Option<&str>, expected: Preempt) {
        assert_eq!(model(sched, version, cmdline), expected);
    }

    #[test]
    fn the_running_choice_is_the_bracketed_one() {
        check(Some("none (voluntary) full \n"), Some(DYNAMIC), None, Preempt::Voluntary);
        check(Some("(none) voluntary full lazy"), Some(DYNAMIC), None, Preempt::None);
        check(Some("full (lazy) \n"), Some(DYNAMIC), Some("preempt=full"), Preempt::Lazy);
        check(Some("none voluntary (full)"), None, None, Preempt::Full);
    }

    #[test]
    fn real_time_wins_over_what_the_scheduler_file_says() {
        check(Some("(full) lazy"), Some("Linux version 7.2.0 #1 SMP PREEMPT_RT x"), None, Preempt::RealTime);
    }

    #[test]
    fn version_and_command_line_serve_without_debugfs() {
        check(None, Some(DYNAMIC), Some("quiet preempt=voluntary"), Preempt::Voluntary);
        check(None, Some(DYNAMIC), Some("preempt=none preempt=full"), Preempt::Full);
        check(None, Some(DYNAMIC), Some("preempt=sometimes"), Preempt::Unknown);
        check(None, Some(DYNAMIC), None, Preempt::Unknown);
        check(None, Some("Linux version 5.15 #1 SMP PREEMPT Tue"), Some("preempt=none"), Preempt::Full);
        check(None, Some("Linux version 5.10 #1 SMP Debian"), None, Preempt::NoneOrVoluntary);
        check(None, None, Some("preempt=full"), Preempt::Unknown);
    }

    #[test]
    fn odd_text_is_unknown_not_wrong() {
        check(Some("none voluntary full"), None, None, Preempt::Unknown);
        check(Some("(sideways)"), Some(DYNAMIC), None, Preempt::Unknown);
        check(Some(""), Some(""), Some(""), Preempt::Unknown);
        assert_eq!(bracketed("[none] integrity confidentiality"), Some("none"));
        assert_eq!(bracketed("( ) [] x"), Some(""));
        assert_eq!(bracketed("(none] [x)"), None);
    }

    #[test]
    fn exact_returns_come_first_wherever_a_kernel_may_preempt() {
        let all = |preempt| return_hook(preempt, true, true, true);
        for preempt in [Preempt::Full, Preempt::Lazy, Preempt::RealTime, Preempt::Unknown] {
            assert_eq!(all(preempt), Some(ReturnHook::TracefsReturn), "{preempt:?}");
            assert_eq!(return_hook(preempt, false, true, true), Some(ReturnHook::Fexit), "{preempt:?}");
        }
        for preempt in [Preempt::None, Preempt::Voluntary, Preempt::NoneOrVoluntary] {
            assert_eq!(all(preempt), Some(ReturnHook::Fexit), "{preempt:?}");
            assert_eq!(return_hook(preempt, true, false, true), Some(ReturnHook::TracefsReturn), "{preempt:?}");
        }
        assert_eq!(return_hook(Preempt::Full, false, false, true), Some(ReturnHook::Kretprobe));
        assert_eq!(return_hook(Preempt::Full, false, false, false), None);
    }
}
