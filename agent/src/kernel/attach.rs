//! Attaching one hook: whatever takes first of tracepoint, fexit and kprobe event.
//!
//! Two kinds of hook skip fexit although they could have it. All of them on a kernel that preempts, since a task that is
//! preempted inside the program makes it miss runs of others on that CPU: a call would be lost at the boundary, and one
//! level further in a wrong function would be named. And those in drivers, since an fexit program holds its module, which
//! could then not be reloaded.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use agent_common::hook::{Cookie, error_kind, role};

use super::btf::{Btf, Returns};
use super::object::Object;
use super::state::{How, State};
use super::sys::{self, Kind, ProgramAccount, Tracing};
use super::tracefs::{self, At, Event, Events, Profile};
use crate::host::symbols::Symbols;
use crate::probes::{Fails, Hook, Program};

/// Return instances for a function at the boundary: as many as the kernel gives.
const BOUNDARY_POOL: u32 = 4096;
/// Return instances for a function further in. Each takes about a hundred bytes.
const INNER_POOL: u32 = 1024;

/// What attaching needs to know of this kernel.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where sysfs is.
    pub(crate) sysfs: PathBuf,
    /// Where tracefs is.
    pub(crate) tracefs: Option<PathBuf>,
    /// Whether the kernel knows tracefs at all.
    pub(crate) tracefs_supported: bool,
    /// The kernel's own type information.
    pub(crate) vmlinux: Option<Btf>,
    /// That of modules, as far as it was asked for; `None` for one that has none.
    pub(crate) modules: HashMap<String, Option<Btf>>,
    /// The functions there are.
    pub(crate) symbols: Symbols,
    /// Kprobe events, or why there are none.
    pub(crate) events: Result<Events, String>,
    /// Whether the kernel preempts, or may.
    pub(crate) preempts: bool,
    /// Whether fexit may be tried.
    pub(crate) fexit: bool,
}

/// A hook that runs. Fields are dropped in this order: links before what they link.
#[derive(Debug)]
pub(crate) struct Attached {
    links: Vec<OwnedFd>,
    programs: Vec<OwnedFd>,
    events: Vec<Event>,
    /// The state it is in: always `State::Attached`.
    pub(crate) state: State,
}

impl Attached {
    /// What the kernel has counted of the hook's programs, entry and return together.
    pub(crate) fn account(&self) -> ProgramAccount {
        let accounts = self.programs.iter().filter_map(|program| sys::program_account(program.as_fd()).ok());
        accounts.fold(ProgramAccount::default(), |sum, one| ProgramAccount {
            run_time_ns: sum.run_time_ns + one.run_time_ns,
            run_count: sum.run_count + one.run_count,
            recursion_misses: sum.recursion_misses + one.recursion_misses,
        })
    }

    /// Says why it is not attached by fexit.
    fn instead_of_fexit(mut self, why: &str) -> Self {
        if let State::Attached { instead, .. } = &mut self.state {
            *instead = Some(format!("no fexit: {why}"));
        }
        self
    }

    /// Calls that found no return instance free, from a reading of the events' profile.
    pub(crate) fn missed(&self, profile: &Profile) -> u64 {
        self.events.iter().filter_map(|event| profile.get(event.name())).map(|(_, missed)| missed).sum()
    }
}

impl Context {
    /// Attaches a hook.
    ///
    /// # Errors
    ///
    /// The state that says why it could not.
    pub(crate) fn attach(&mut self, object: &Object, number: u16, hook: &Hook) -> Result<Attached, State> {
        if let Some(program) = hook.tracepoint() {
            return self.tracepoint(object, number, hook, program);
        }
        let mut last = None;
        for (module, function) in self.candidates(hook) {
            match self.function(object, number, hook, &module, &function) {
                Ok(attached) => return Ok(attached),
                Err(why) => last = Some(State::Failed(why)),
            }
        }
        Err(last.unwrap_or_else(|| self.absent(hook)))
    }

    /// Hits and misses of this process's events.
    pub(crate) fn profile(&self) -> Profile {
        self.events.as_ref().map(Events::profile).unwrap_or_default()
    }

    /// The functions of a row that this kernel has, with the modules they are in, in the row's order.
    fn candidates(&self, hook: &Hook) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for function in hook.functions {
            for module in hook.modules {
                let Ok(resolved) = self.symbols.resolve(function, Some(module)) else { continue };
                let place = resolved.module.unwrap_or_default();
                // Static functions of other drivers may have the same name.
                if !place.is_empty() && !hook.modules.contains(&place) {
                    continue;
                }
                let candidate = (place.to_owned(), resolved.name.to_owned());
                if !found.contains(&candidate) {
                    found.push(candidate);
                }
            }
        }
        found
    }

    /// Why a row has nothing to attach to.
    fn absent(&self, hook: &Hook) -> State {
        // A row of no module is one of the kernel itself.
        let loaded = hook.modules.is_empty()
            || hook.modules.iter().any(|module| self.symbols.of_module(module).next().is_some());
        if loaded {
            State::Unsupported(format!("this kernel has none of {}", hook.functions.join(", ")))
        } else {
            State::Waiting(format!("module {} is not loaded", hook.modules.first().unwrap_or(&"")))
        }
    }

    fn function(
        &mut self,
        object: &Object,
        number: u16,
        hook: &Hook,
        module: &str,
        function: &str,
    ) -> Result<Attached, String> {
        if let Some(why) = self.wrong_type(hook, module, function) {
            return Err(why);
        }
        let why_not_fexit = if !self.fexit {
            "not wanted".to_owned()
        } else if self.preempts && self.events.is_ok() {
            // Without kprobe events fexit is better than nothing: what it misses is counted.
            "this kernel preempts, fexit would miss runs".to_owned()
        } else if hook.may_not_hold_module() {
            "it would hold the driver's module".to_owned()
        } else {
            match self.fexit(object, number, hook, module, function) {
                Ok(attached) => return Ok(attached),
                Err(why) => why,
            }
        };
        self.kprobe(object, number, hook, module, function)
            .map(|attached| attached.instead_of_fexit(&why_not_fexit))
            .map_err(|why| format!("{function}: kprobe: {why}; fexit: {why_not_fexit}"))
    }

    /// A function whose result is not what the table says would be misread, by whatever means it is attached.
    fn wrong_type(&mut self, hook: &Hook, module: &str, function: &str) -> Option<String> {
        let vmlinux = self.vmlinux.as_ref()?;
        let (btf, base) = if module.is_empty() {
            (vmlinux, None)
        } else {
            let entry = self.modules.entry(module.to_owned());
            let read = entry.or_insert_with(|| Btf::module(&self.sysfs, module, vmlinux).ok());
            (read.as_ref()?, Some(vmlinux))
        };
        let (returns, _) = btf.signature(base, btf.function(function)?)?;
        // Programs that run at the entry do not read what the function returns.
        let event = matches!(hook.program, Program::DeviceEvent | Program::GidEvent | Program::DriverHealth(_));
        let fits = event || returns_fit(hook.fails, returns);
        (!fits).then(|| format!("{function} returns {returns:?}, not what the table says"))
    }

    fn fexit(
        &mut self,
        object: &Object,
        number: u16,
        hook: &Hook,
        module: &str,
        function: &str,
    ) -> Result<Attached, String> {
        let vmlinux = self.vmlinux.as_ref().ok_or("no BTF of the kernel")?;
        let btf = if module.is_empty() {
            vmlinux
        } else {
            let entry = self.modules.entry(module.to_owned());
            let read = entry.or_insert_with(|| Btf::module(&self.sysfs, module, vmlinux).ok());
            read.as_ref().ok_or_else(|| format!("module {module} has no BTF"))?
        };
        let id = btf.function(function).ok_or_else(|| format!("{function} has no BTF"))?;
        let object_fd = if module.is_empty() { None } else { Some(sys::module_btf(module).map_err(text)?) };
        let cookie = cookie(number, hook).0;
        let mut attached = Attached {
            links: Vec::new(),
            programs: Vec::new(),
            events: Vec::new(),
            state: attached(How::Fexit, module, function),
        };
        for (at, program) in programs(hook).iter().map(|p| (p.tracing_at, p.tracing)) {
            let kind = Kind::Tracing { at, function: id, object: object_fd.as_ref().map(OwnedFd::as_fd) };
            let program = program.ok_or("it would hold the driver's module")?;
            let loaded = object.program(program, hook.name, kind).map_err(text)?;
            let link = sys::link_tracing(loaded.as_fd(), at, cookie).map_err(text)?;
            attached.links.insert(0, link);
            attached.programs.push(loaded);
        }
        Ok(attached)
    }

    fn kprobe(
        &self,
        object: &Object,
        number: u16,
        hook: &Hook,
        module: &str,
        function: &str,
    ) -> Result<Attached, String> {
        let events = self.events.as_ref().map_err(Clone::clone)?;
        let cookie = cookie(number, hook).0;
        let mut attached = Attached {
            links: Vec::new(),
            programs: Vec::new(),
            events: Vec::new(),
            state: attached(How::Kprobe, module, function),
        };
        let pool = if matches!(hook.program, Program::Syscall(_)) { BOUNDARY_POOL } else { INNER_POOL };
        for step in programs(hook) {
            let at = if step.tracing_at == Tracing::Entry { At::Entry } else { At::Return(pool) };
            let loaded = object.program(step.kprobe, hook.name, Kind::Kprobe).map_err(text)?;
            let event = events.make(hook.name, at, module, function).map_err(text)?;
            let (link, perf) = sys::link_event(loaded.as_fd(), event.id, cookie).map_err(text)?;
            // The newest link goes first: an entry without its return would leave calls open for ever.
            attached.links.splice(0..0, [link, perf]);
            attached.programs.push(loaded);
            attached.events.push(event);
        }
        Ok(attached)
    }

    fn tracepoint(&self, object: &Object, number: u16, hook: &Hook, program: &str) -> Result<Attached, State> {
        let Some(tracefs) = &self.tracefs else {
            return Err(if self.tracefs_supported {
                State::Waiting(tracefs::NOT_MOUNTED.to_owned())
            } else {
                State::Unsupported("this kernel has no tracefs".to_owned())
            });
        };
        let event = hook.functions.first().copied().unwrap_or_default();
        let Ok((id, _)) = tracefs::fields(tracefs, event) else { return Err(self.absent(hook)) };
        let load = || -> Result<Attached, String> {
            let loaded = object.program(program, hook.name, Kind::Tracepoint).map_err(text)?;
            let (link, perf) = sys::link_event(loaded.as_fd(), id, cookie(number, hook).0).map_err(text)?;
            Ok(Attached {
                links: vec![link, perf],
                programs: vec![loaded],
                events: Vec::new(),
                state: attached(How::Tracepoint, "", event),
            })
        };
        load().map_err(|why| State::Failed(format!("{event}: {why}")))
    }
}

/// One program of a hook, in its two forms.
struct Step {
    tracing_at: Tracing,
    /// `None` for rows that never have it.
    tracing: Option<&'static str>,
    kprobe: &'static str,
}

const INNER: &[Step] =
    &[Step { tracing_at: Tracing::Exit, tracing: Some("inner_exit_fexit"), kprobe: "inner_exit_kretprobe" }];
/// The return first: an entry whose return is not seen would leave its record open.
const BOUNDARY: &[Step] = &[
    Step { tracing_at: Tracing::Exit, tracing: Some("syscall_exit_fexit"), kprobe: "syscall_exit_kretprobe" },
    Step { tracing_at: Tracing::Entry, tracing: Some("syscall_entry_fentry"), kprobe: "syscall_entry_kprobe" },
];
const DEVICE: &[Step] =
    &[Step { tracing_at: Tracing::Entry, tracing: Some("device_event_fentry"), kprobe: "device_event_kprobe" }];
/// Only drivers have such rows.
const HEALTH: &[Step] = &[Step { tracing_at: Tracing::Entry, tracing: None, kprobe: "driver_health_kprobe" }];

/// The programs a row runs, in the order in which they are attached.
fn programs(hook: &Hook) -> &'static [Step] {
    match hook.program {
        Program::Syscall(_) => BOUNDARY,
        Program::DeviceEvent | Program::GidEvent => DEVICE,
        Program::Inner | Program::Framework => INNER,
        Program::DriverHealth(_) => HEALTH,
        _ => &[],
    }
}

/// The names of the kernel side's programs that a row may run, for comparing the table with the object.
pub(crate) fn program_names(hook: &Hook) -> Vec<&'static str> {
    let functions = programs(hook).iter().flat_map(|step| step.tracing.into_iter().chain([step.kprobe]));
    hook.tracepoint().into_iter().chain(functions).collect()
}

fn cookie(number: u16, hook: &Hook) -> Cookie {
    let kind = match hook.fails {
        Fails::Int => error_kind::INT,
        Fails::Long => error_kind::LONG,
    };
    let role = match hook.program {
        Program::Syscall(role) => role,
        Program::Framework => role::FRAMEWORK,
        Program::GidEvent => role::GID_EVENT,
        _ => role::INNER,
    };
    Cookie::new(number, hook.layer.number(), kind, role)
}

/// True if a function that fails as the table says can have this type.
fn returns_fit(fails: Fails, returns: Returns) -> bool {
    match fails {
        Fails::Int => returns == Returns::Integer(4),
        Fails::Long => matches!(returns, Returns::Integer(8) | Returns::Pointer),
    }
}

fn attached(how: How, module: &str, function: &str) -> State {
    State::Attached { how, function: function.to_owned(), module: module.to_owned(), instead: None }
}

fn text(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}
