//! What the kernel side's health hooks are told: where trace events and structures keep what they read.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use agent_common::health::{DevicePath, PATHS, Settings};
use anyhow::Context as _;
use aya::maps::Array;

use super::attach::Context;
use super::btf::Btf;
use super::object::Object;
use super::tracefs;
use crate::probes::path::{self, Member};
use crate::probes::{Hook, Program};

const _: () = assert!(crate::probes::ROWS <= PATHS);

/// What has been told.
#[derive(Debug)]
pub(super) struct Told {
    settings: Option<Settings>,
    paths: BTreeMap<u16, DevicePath>,
    /// Names of the reasons for which packets are thrown away, by number.
    reasons: HashMap<u64, String>,
}

impl Told {
    /// Nothing yet.
    pub(super) fn nothing() -> Self {
        Self { settings: None, paths: BTreeMap::new(), reasons: HashMap::new() }
    }

    /// Tells what this moment's trace events and type information say, as far as it is new.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub(super) fn update(&mut self, object: &mut Object, context: &mut Context) -> anyhow::Result<()> {
        let settings = settings(context);
        if self.settings != Some(settings) {
            let mut map: Array<_, [u32; Settings::WORDS]> = Array::try_from(object.map_mut("HEALTH_SETTINGS")?)?;
            map.set(0, settings.words(), 0).context("writing what health hooks read")?;
            self.settings = Some(settings);
            self.reasons = context
                .tracefs
                .as_deref()
                .and_then(|root| tracefs::symbols(root, "skb/kfree_skb").ok())
                .unwrap_or_default();
        }
        for (number, hook) in Hook::all() {
            let Program::DriverHealth(way) = hook.program else { continue };
            let Some(module) = hook.modules.first() else { continue };
            // A module that comes again may be another one; its type information was forgotten when it went.
            let known = self.paths.contains_key(&number) && context.modules.contains_key(*module);
            if known || context.symbols.of_module(module).next().is_none() {
                continue;
            }
            let found = resolve(context, module, way).unwrap_or(DevicePath::NONE);
            let mut map: Array<_, [u32; DevicePath::WORDS]> = Array::try_from(object.map_mut("HEALTH_PATHS")?)?;
            map.set(u32::from(number), found.words(), 0).context("writing where a driver names its device")?;
            self.paths.insert(number, found);
        }
        Ok(())
    }

    /// The name of the reason for which a packet was thrown away, as the kernel spells it.
    pub(super) fn reason(&self, number: u32) -> String {
        self.reasons.get(&u64::from(number)).map_or_else(|| format!("reason_{number}"), |name| name.to_lowercase())
    }
}

fn settings(context: &Context) -> Settings {
    let mut settings = Settings::DEFAULT;
    if let Some(root) = &context.tracefs {
        let event = |event: &str, fields: &mut [(&str, &mut u32)]| read(root, event, fields);
        event(
            "devlink/devlink_health_report",
            &mut [
                ("dev_name", &mut settings.report_device),
                ("reporter_name", &mut settings.report_part),
                ("msg", &mut settings.report_message),
            ],
        );
        event(
            "devlink/devlink_hwerr",
            &mut [
                ("dev_name", &mut settings.hwerr_device),
                ("err", &mut settings.hwerr_error),
                ("msg", &mut settings.hwerr_message),
            ],
        );
        event(
            "net/net_dev_xmit_timeout",
            &mut [("name", &mut settings.timeout_netdev), ("queue_index", &mut settings.timeout_queue)],
        );
        event(
            "napi/napi_poll",
            &mut [
                ("dev_name", &mut settings.napi_netdev),
                ("work", &mut settings.napi_work),
                ("budget", &mut settings.napi_budget),
            ],
        );
        event("skb/kfree_skb", &mut [("skbaddr", &mut settings.drop_packet), ("reason", &mut settings.drop_reason)]);
    }
    if let Some(vmlinux) = &context.vmlinux {
        let offset = |structure, member| vmlinux.offset(None, structure, member);
        settings.packet_netdev = offset("sk_buff", "dev").unwrap_or(settings.packet_netdev);
        settings.netdev_name = offset("net_device", "name").unwrap_or(settings.netdev_name);
    }
    settings
}

/// Offsets of fields of a trace event; what is not there stays unknown.
fn read(root: &Path, event: &str, fields: &mut [(&str, &mut u32)]) {
    let Ok((_, found)) = tracefs::fields(root, event) else { return };
    for (name, target) in fields {
        if let Some(offset) = found.get(*name) {
            **target = *offset;
        }
    }
}

/// A path in the offsets of a module; `None` if its type information does not tell all of it.
fn resolve(context: &mut Context, module: &str, way: &path::DevicePath) -> Option<DevicePath> {
    let vmlinux = context.vmlinux.as_ref()?;
    let entry = context.modules.entry(module.to_owned());
    let btf = entry.or_insert_with(|| Btf::module(&context.sysfs, module, vmlinux).ok()).as_ref()?;
    let sum = |members: &[Member]| {
        members
            .iter()
            .try_fold(0u32, |sum, (structure, member)| sum.checked_add(btf.offset(Some(vmlinux), structure, member)?))
    };
    let mut found = DevicePath { known: 1, back: sum(way.back)?, name: sum(way.name)?, ..DevicePath::NONE };
    for (target, hop) in found.hops.iter_mut().zip(way.hops) {
        *target = sum(hop)?;
        found.hops_len += 1;
    }
    (usize::try_from(found.hops_len) == Ok(way.hops.len())).then_some(found)
}
