//! The kernel side as user space sees it: loaded, attached, read. The only place that names aya, and the only one with
//! `unsafe` in the agent.
#![expect(unsafe_code, reason = "system calls that no library makes; every block says why it is sound")]

mod attach;
mod btf;
pub(crate) mod clock;
mod ethtool;
mod health;
mod maps;
mod object;
mod readable;
pub(crate) mod sampler;
mod slot;
pub(crate) mod state;
mod sys;
mod test_run;
mod tracefs;
mod tracer;

pub(crate) use attach::program_names;
pub(crate) use btf::Btf;
pub(crate) use ethtool::Ethtool;
#[cfg(test)]
pub(crate) use object::map_shapes;
pub(crate) use object::try_fexit;
pub(crate) use readable::readable;
pub(crate) use sys::{ProgramAccount, enable_statistics};
pub(crate) use tracefs::remove_leftovers;
pub(crate) use tracer::{Options, Tracer};
