//! The tracer: every hook and its state, through loading and unloading of modules.

use std::collections::{BTreeMap, HashMap};
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
use super::slot::Slot;
use super::state::{HookState, Snapshot, State};
use super::tracefs::{self, Events};
use crate::host::kernel::{KernelFacts, tracefs_of};
use crate::host::roots::Roots;
use crate::host::symbols::Symbols;
use crate::probes::{Hook, Subject};

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
    /// What was attached to modules that are gone. To take it down takes time, and is done before anything attaches.
    leaving: Vec<Attached>,
    /// The row that is attached next; `None` where all were looked at.
    next: Option<usize>,
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
            tracefs_supported: facts.tracefs_supported,
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
        let (modules, leaving, next) = (None, Vec::new(), None);
        let mut tracer = Self { slots, context, ring, object, settings, health, roots, modules, leaving, next };
        tracer.refresh()?;
        Ok(tracer)
    }

    /// Looks which modules have come and gone, and attaches and detaches accordingly. Says whether anything changed.
    ///
    /// # Errors
    ///
    /// If the list of modules or symbols cannot be read.
    pub(crate) fn refresh(&mut self) -> anyhow::Result<bool> {
        let changed = self.look()?;
        self.attach(Duration::MAX);
        Ok(changed)
    }

    /// Looks which modules have come and gone, and what else has changed. What is to be attached because of it is left
    /// to [`Self::attach`]. Says whether anything changed.
    ///
    /// # Errors
    ///
    /// If the list of modules or symbols cannot be read.
    pub(crate) fn look(&mut self) -> anyhow::Result<bool> {
        let now = Instant::now();
        let modules = loaded_modules(&self.roots.procfs)?;
        let released = self.slots.iter_mut().filter_map(|slot| slot.release(now).then_some(())).count() > 0;
        let mounted = self.look_for_tracefs();
        if self.modules.as_ref() == Some(&modules) && !released && !mounted {
            return Ok(false);
        }
        let before = self.modules.take().unwrap_or_default();
        let gone = |name: &String| modules.get(name) != before.get(name);
        let changed: Vec<String> = before.keys().filter(|name| gone(name)).cloned().collect();
        if !changed.is_empty() {
            let profile = self.context.profile();
            let leaving = self.slots.iter_mut().filter_map(|slot| slot.detach_from(&changed, now, &profile));
            self.leaving.extend(leaving);
        }
        for module in &changed {
            self.context.modules.remove(module);
        }
        self.context.symbols = Symbols::read(&self.roots, self.context.tracefs.as_deref())
            .with_context(|| format!("reading {}", self.roots.procfs.join("kallsyms").display()))?;
        self.modules = Some(modules);
        self.offsets()?;
        self.next = Some(0);
        Ok(true)
    }

    /// True once, when tracefs has been mounted since.
    fn look_for_tracefs(&mut self) -> bool {
        if self.context.tracefs.is_some() {
            return false;
        }
        self.context.tracefs = tracefs_of(&self.roots);
        let mounted = self.context.tracefs.is_some();
        if mounted {
            self.context.events = events(self.context.tracefs.as_deref());
        }
        mounted
    }

    /// Takes down and attaches what the last looks have found, for about as long as `most`. Says whether there is more.
    pub(crate) fn attach(&mut self, most: Duration) -> bool {
        let start = Instant::now();
        while self.step() {
            if start.elapsed() >= most {
                return true;
            }
        }
        false
    }

    /// One hook of it; false where there was none.
    fn step(&mut self) -> bool {
        if self.leaving.pop().is_some() {
            return true;
        }
        let Some(index) = self.next.filter(|index| *index < self.slots.len()) else {
            self.next = None;
            return false;
        };
        self.next = Some(index + 1);
        let (before, rest) = self.slots.split_at_mut(index);
        let Some(slot) = rest.first_mut() else { return false };
        // A row that stands in for another comes after it, and leaves when that one comes.
        let attached = |other: &str| before.iter().any(|slot| slot.hook.name == other && slot.attached.is_some());
        match slot.hook.unless.filter(|other| attached(other)) {
            Some(other) => slot.stand_back(other, Instant::now(), &self.context),
            None => slot.attach(Instant::now(), &mut self.context, &self.object),
        }
        true
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
        let profile = self.context.profile();
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

fn events(tracefs: Option<&Path>) -> Result<Events, String> {
    let root = tracefs.ok_or_else(|| tracefs::NOT_MOUNTED.to_owned())?;
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
