//! The kernel side as the loop's source: the tracer, and the decoder that knows this host's names.

use std::io;
use std::os::fd::OwnedFd;

use anyhow::Context as _;

use super::source::Source;
use crate::config::checked::HookSet;
use crate::config::{Config, limits};
use crate::event::Event;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::{HookState, Snapshot};
use crate::kernel::{Options, Tracer, enable_statistics};
use crate::probes::{Hook, Subject};
use crate::verbs::record::Decoder;

/// The loaded kernel side with its decoder.
pub(crate) struct TracerSource {
    tracer: Tracer,
    decoder: Decoder,
    /// Run times are measured while this is open.
    statistics: Option<OwnedFd>,
}

impl TracerSource {
    /// Loads and attaches what is configured and this kernel takes.
    ///
    /// # Errors
    ///
    /// If the kernel side cannot be loaded at all.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Self> {
        let wanted = |subject: &Subject| match subject {
            Subject::Verbs => config.verbs,
            Subject::Cm => config.cm,
            Subject::Device => config.device,
            Subject::Health => config.health,
            Subject::Napi => config.health && config.napi,
            Subject::Drops => config.health && config.drops,
        };
        let mut tracer = Tracer::start(&Options {
            roots: config.roots.clone(),
            latency: config.latency,
            subjects: Subject::ALL.into_iter().filter(wanted).collect(),
            all: config.hooks == HookSet::All,
            fexit: true,
        })
        .context("loading the kernel side; `fabricscope doctor` says what this host lacks")?;
        let quarantine = config.quarantine;
        tracer.set_quarantine(usize::try_from(quarantine.transitions).unwrap_or(usize::MAX), quarantine.window);
        let mut source = Self { tracer, decoder: Decoder::new(&config.roots), statistics: None };
        source.tell_decoder();
        Ok(source)
    }

    /// What is attached has functions, which the events' names come from.
    fn tell_decoder(&mut self) {
        let functions = Hook::all().map(|(number, _)| self.tracer.function(number).map(str::to_owned));
        self.decoder.set_functions(functions.collect());
    }
}

impl Source for TracerSource {
    fn hooks(&self) -> Vec<HookState> {
        self.tracer.hooks()
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        self.tracer.snapshot()
    }

    fn events_fd(&self) -> io::Result<OwnedFd> {
        self.tracer.events_fd()
    }

    fn drain(&mut self, most: usize, sink: &mut dyn FnMut(anyhow::Result<Event>)) -> usize {
        let Self { tracer, decoder, .. } = self;
        tracer.drain(most, &mut |bytes| sink(decoder.decode(bytes).map_err(Into::into)))
    }

    fn refresh(&mut self) -> anyhow::Result<bool> {
        self.tracer.look()
    }

    fn attach(&mut self) -> bool {
        let more = self.tracer.attach(limits::ATTACH_TURN);
        self.tell_decoder();
        more
    }

    fn refresh_devices(&mut self) {
        self.decoder.refresh();
    }

    fn devices(&self) -> &RdmaFacts {
        self.decoder.devices()
    }

    fn measure(&mut self, on: bool) -> anyhow::Result<()> {
        self.statistics = on.then(enable_statistics).transpose().context("turning on run-time statistics")?;
        Ok(())
    }
}
