//! The tracer: every hook and its state, through loading and unloading of modules.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use agent_common::settings::Settings;
use anyhow::Context as _;
use aya::maps::{MapData, RingBuf};

use super::attach::{Attached, Context};
use super::btf::Btf;
use super::health::Told;
use super::maps;
use super::object::Object;
use super::state::{HookState, Snapshot, State};
use super::sys::ProgramAccount;
use super::tracefs::{self, Events};
use crate::host::kernel::KernelFacts;
use crate::host::roots::Roots;
use crate::host::symbols::Symbols;
use crate::probes::{Hook, Subject};

/// A hook that comes or goes more often than this within this time is left alone, unless something else is set.
const FLAPPING: (usize, Duration) = (10, Duration::from_secs(60));
/// How long a flapping hook is left alone at first; twice as long each further time.
const QUARANTINE: Duration = Duration::from_secs(30);
/// The longest it is left alone.
const QUARANTINE_LONGEST: Duration = Duration::from_secs(3600);

/// What to trace.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where sysfs, procfs and their like are.
    pub(crate) roots: Roots,
    /// Take time stamps and keep histograms.
    pub(crate) latency: bool,
    /// Which hooks.
    pub(crate) subjects: Vec<Subject>,
    /// All rows of the probe table, not only those that are always on.
    pub(crate) all: bool,
    /// Whether fexit may be used.
    pub(crate) fexit: bool,
}

/// One row of the probe table at work.
#[derive(Debug)]
struct Slot {
    number: u16,
    hook: &'static Hook,
    wanted: bool,
    attached: Option<Attached>,
    /// The state while nothing is attached.
    state: State,
    transitions: u64,
    changes: VecDeque<Instant>,
    /// More changes than these within this time are too many.
    flapping: (usize, Duration),
    quarantine: Option<(Instant, Duration)>,
    /// What programs that are gone had counted.
    past: ProgramAccount,
    past_missed: u64,
}

/// The loaded kernel side.
pub(crate) struct Tracer {
    slots: Vec<Slot>,
    context: Context,
    ring: RingBuf<MapData>,
    object: Object,
    settings: Settings,
    health: Told,
    roots: Roots,
    /// `None` before the first look.
    modules: Option<BTreeMap<String, String>>,
}

impl Tracer {
    /// Loads the kernel side and attaches what this kernel takes.
    ///
    /// # Errors
    ///
    /// If the maps cannot be made, or the kernel's symbols cannot be read. A hook that cannot be attached is no error:
    /// its state says why.
    pub(crate) fn start(options: &Options) -> anyhow::Result<Self> {
        let facts = KernelFacts::read(&options.roots);
        if let Some(root) = &facts.tracefs {
            // Without permission there is nothing to remove either.
            let _ = tracefs::remove_leftovers(root);
        }
        let mut object = Object::load()?;
        let ring = RingBuf::try_from(object.take_map("EVENTS")?).context("mapping the ring buffer")?;
        let sysfs = options.roots.sysfs.clone();
        let vmlinux = Btf::vmlinux(&sysfs).ok();
        let context = Context {
            tracefs: facts.tracefs.clone(),
            vmlinux,
            modules: HashMap::new(),
            symbols: Symbols::default(),
            events: events(facts.tracefs.as_deref()),
            // A kernel that does not say is treated as one that preempts: that costs time, not calls.
            preempts: facts.preempt.preempts().unwrap_or(true),
            fexit: options.fexit,
            sysfs,
        };
        let settings = Settings { latency: u32::from(options.latency), ..Settings::DEFAULT };
        maps::set_settings(&mut object, &settings)?;
        let wanted = |hook: &Hook| options.subjects.contains(&hook.subject) && (hook.default || options.all);
        let slots = Hook::all().map(|(number, hook)| Slot::new(number, hook, wanted(hook))).collect();
        let roots = options.roots.clone();
        let health = Told::nothing();
        let mut tracer = Self { slots, context, ring, object, settings, health, roots, modules: None };
        tracer.refresh()?;
        Ok(tracer)
    }

    /// Looks which modules have come and gone, and attaches and detaches accordingly. Says whether anything changed.
    ///
    /// # Errors
    ///
    /// If the list of modules or symbols cannot be read.
    pub(crate) fn refresh(&mut self) -> anyhow::Result<bool> {
        let now = Instant::now();
        let modules = loaded_modules(&self.roots.procfs)?;
        let released = self.slots.iter_mut().filter_map(|slot| slot.release(now).then_some(())).count() > 0;
        if self.modules.as_ref() == Some(&modules) && !released {
            return Ok(false);
        }
        let before = self.modules.take().unwrap_or_default();
        let gone = |name: &String| modules.get(name) != before.get(name);
        let changed: Vec<String> = before.keys().filter(|name| gone(name)).cloned().collect();
        for slot in &mut self.slots {
            slot.detach_from(&changed, now, &self.context);
        }
        for module in &changed {
            self.context.modules.remove(module);
        }
        self.context.symbols = Symbols::read(&self.roots, self.context.tracefs.as_deref())
            .with_context(|| format!("reading {}", self.roots.procfs.join("kallsyms").display()))?;
        self.modules = Some(modules);
        self.offsets()?;
        self.attach_all(now);
        Ok(true)
    }

    /// Attaches what is wanted. A row that stands in for another comes after it, and leaves when that one comes.
    fn attach_all(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            let (before, rest) = self.slots.split_at_mut(index);
            let Some(slot) = rest.first_mut() else { break };
            let attached = |other: &str| before.iter().any(|slot| slot.hook.name == other && slot.attached.is_some());
            match slot.hook.unless.filter(|other| attached(other)) {
                Some(other) => slot.stand_back(other, now, &self.context),
                None => slot.attach(now, &mut self.context, &self.object),
            }
        }
    }

    /// Gives the kernel side the offsets that this kernel's type information and trace events tell.
    fn offsets(&mut self) -> anyhow::Result<()> {
        let context = &self.context;
        let mut settings = self.settings;
        if let Some(vmlinux) = &context.vmlinux {
            let find = |structure, member| vmlinux.offset(None, structure, member);
            take(&mut settings.file_inode, find("file", "f_inode"));
            take(&mut settings.inode_rdev, find("inode", "i_rdev"));
            if let Ok(core) = Btf::module(&context.sysfs, "ib_core", vmlinux) {
                let find = |structure, member| core.offset(Some(vmlinux), structure, member);
                take(&mut settings.ib_device_name, find("ib_device", "name"));
                take(&mut settings.ib_qp_num, find("ib_qp", "qp_num"));
            }
        }
        if let Some(root) = &context.tracefs {
            let fields = |event| tracefs::fields(root, event).map(|(_, fields)| fields).unwrap_or_default();
            let mlx5 = fields("mlx5/mlx5_cmd");
            take(&mut settings.mlx5_cmd_opcode, mlx5.get("opcode").copied());
            take(&mut settings.mlx5_cmd_op_mod, mlx5.get("op_mod").copied());
            take(&mut settings.mlx5_cmd_status, mlx5.get("status").copied());
            take(&mut settings.mlx5_cmd_syndrome, mlx5.get("syndrome").copied());
            take(&mut settings.mlx5_cmd_err, mlx5.get("err").copied());
            let cm = fields("rdma_cma/cm_event_handler");
            take(&mut settings.cm_event, cm.get("event").copied());
            take(&mut settings.cm_status, cm.get("status").copied());
            take(&mut settings.cm_id, cm.get("cm_id").copied());
            take(&mut settings.cm_source, cm.get("srcaddr").copied());
            take(&mut settings.cm_destination, cm.get("dstaddr").copied());
        }
        if settings != self.settings {
            self.settings = settings;
            maps::set_settings(&mut self.object, &settings)?;
        }
        self.health.update(&mut self.object, &mut self.context)
    }

    /// Every row of the probe table with its state and accounts.
    pub(crate) fn hooks(&self) -> Vec<HookState> {
        let profile = self.context.events.as_ref().map(Events::profile).unwrap_or_default();
        self.slots.iter().map(|slot| slot.state(&profile)).collect()
    }

    /// The kernel function, or tracepoint, that a row is or was last attached to.
    pub(crate) fn function(&self, number: u16) -> Option<&str> {
        match &self.slots.get(usize::from(number))?.attached.as_ref()?.state {
            State::Attached { function, .. } => Some(function),
            _ => None,
        }
    }

    /// Reads all counters.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub(crate) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        maps::snapshot(&self.object, &self.health)
    }

    /// A hook that comes or goes more than `transitions` times within `window` is left alone for a while.
    pub(crate) fn set_quarantine(&mut self, transitions: usize, window: Duration) {
        for slot in &mut self.slots {
            slot.flapping = (transitions, window);
        }
    }

    /// Readable when records wait.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub(crate) fn events_fd(&self) -> io::Result<OwnedFd> {
        self.ring.as_fd().try_clone_to_owned()
    }

    /// Hands over at most `most` records that wait, and says how many there were.
    pub(crate) fn drain(&mut self, most: usize, sink: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < most {
            let Some(record) = self.ring.next() else { break };
            sink(&record);
            count += 1;
        }
        count
    }
}

impl Slot {
    fn new(number: u16, hook: &'static Hook, wanted: bool) -> Self {
        let why = if hook.default { "not wanted" } else { "attached for sessions only" };
        Self {
            number,
            hook,
            wanted,
            attached: None,
            state: State::Disabled(why.to_owned()),
            transitions: 0,
            changes: VecDeque::new(),
            flapping: FLAPPING,
            quarantine: None,
            past: ProgramAccount::default(),
            past_missed: 0,
        }
    }

    /// Attaches, unless it is attached, not wanted, or in quarantine.
    fn attach(&mut self, now: Instant, context: &mut Context, object: &Object) {
        if !self.wanted || self.attached.is_some() || self.quarantine.is_some_and(|(until, _)| now < until) {
            return;
        }
        match context.attach(object, self.number, self.hook) {
            Ok(attached) => {
                self.attached = Some(attached);
                self.changed(now);
            }
            Err(state) => self.state = state,
        }
    }

    /// Detaches if the function was in one of these modules.
    fn detach_from(&mut self, modules: &[String], now: Instant, context: &Context) {
        let Some(attached) = &self.attached else { return };
        let in_one = match &attached.state {
            State::Attached { module, .. } if !module.is_empty() => modules.contains(module),
            _ => self.hook.modules.iter().any(|module| modules.iter().any(|gone| gone == module)),
        };
        if in_one {
            self.detach(State::Waiting("its module was unloaded".to_owned()), now, context);
        }
    }

    /// Leaves the place to the row that it would stand in for.
    fn stand_back(&mut self, other: &str, now: Instant, context: &Context) {
        if self.wanted {
            self.detach(State::Disabled(format!("{other} is attached")), now, context);
        }
    }

    /// Keeps what was counted, detaches, and says why. Without an attachment only the reason changes.
    fn detach(&mut self, state: State, now: Instant, context: &Context) {
        let Some(attached) = &self.attached else {
            self.state = state;
            return;
        };
        let profile = context.events.as_ref().map(Events::profile).unwrap_or_default();
        self.past_missed += attached.missed(&profile);
        let account = attached.account();
        self.past.run_time_ns += account.run_time_ns;
        self.past.run_count += account.run_count;
        self.past.recursion_misses += account.recursion_misses;
        self.attached = None;
        self.state = state;
        self.changed(now);
    }

    /// Counts a change, and puts the hook into quarantine if there were too many.
    fn changed(&mut self, now: Instant) {
        let (most, window) = self.flapping;
        self.transitions += 1;
        self.changes.push_back(now);
        while self.changes.front().is_some_and(|first| now.duration_since(*first) > window) {
            self.changes.pop_front();
        }
        if self.changes.len() > most && self.attached.is_none() {
            let wait = self.quarantine.map_or(QUARANTINE, |(_, last)| (last * 2).min(QUARANTINE_LONGEST));
            self.quarantine = Some((now + wait, wait));
            self.changes.clear();
            self.state = State::Quarantined(format!(
                "came and went more than {most} times in {} s; tried again in {} s",
                window.as_secs(),
                wait.as_secs()
            ));
        }
    }

    /// True once, when a quarantine has passed.
    fn release(&mut self, now: Instant) -> bool {
        let over = self.attached.is_none()
            && matches!(self.state, State::Quarantined(_))
            && self.quarantine.is_some_and(|(until, _)| now >= until);
        if over {
            self.state = State::Waiting("its quarantine is over".to_owned());
        }
        over
    }

    fn state(&self, profile: &HashMap<String, (u64, u64)>) -> HookState {
        let account = self.attached.as_ref().map(Attached::account).unwrap_or_default();
        let missed = self.attached.as_ref().map_or(0, |attached| attached.missed(profile));
        HookState {
            number: self.number,
            state: self.attached.as_ref().map_or_else(|| self.state.clone(), |attached| attached.state.clone()),
            transitions: self.transitions,
            run_count: self.past.run_count + account.run_count,
            run_time_ns: self.past.run_time_ns + account.run_time_ns,
            missed: self.past_missed + missed + self.past.recursion_misses + account.recursion_misses,
        }
    }
}

fn events(tracefs: Option<&Path>) -> Result<Events, String> {
    let root = tracefs.ok_or_else(|| "no tracefs is mounted".to_owned())?;
    Events::new(root).map_err(|error| format!("{}: {error}", root.join("kprobe_events").display()))
}

/// Loaded modules with what tells one loading from the next: their address, or their size where it is hidden.
fn loaded_modules(procfs: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let path = procfs.join("modules");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // A kernel without modules has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?.to_owned();
        // A module on its way in or out is not there.
        let live = line.split_whitespace().nth(4)? == "Live";
        live.then(|| (name, line.split_whitespace().nth(5).unwrap_or_default().to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

fn take(target: &mut u32, found: Option<u32>) {
    if let Some(found) = found {
        *target = found;
    }
}
