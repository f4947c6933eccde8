//! Builds the kernel side. The one place that knows how; used by the agent's build script and by xtask.
