//! Which environment variables an inner cargo inherits from the cargo that runs us.

use std::process::Command;

/// Variables that describe the outer build or would change the inner one's flags.
const KEPT_AWAY: &[&str] = &[
    "DEBUG",
    "HOST",
    "LD_PRELOAD",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
];

/// Of cargo's many variables only those that say where things are fetched from, kept, and shown, or that share
/// out the machine's job slots. The others (`CARGO_PKG_*`, `CARGO_CFG_*`, `CARGO_BUILD_*`, `CARGO_PROFILE_*`,
/// `CARGO_TARGET_*`, encoded flags) belong to the outer build.
const CARGO_KEPT: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
];

/// Whether an inner cargo may see the variable `name`.
pub fn inherited(name: &str) -> bool {
    if name.starts_with("CARGO_") {
        return CARGO_KEPT.iter().any(|kept| name.starts_with(kept));
    }
    !KEPT_AWAY.contains(&name) && !name.starts_with("DEP_")
}

/// Takes away from `command` every variable that is not [`inherited`].
pub fn scrub(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| !inherited(name)) {
            command.env_remove(&name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(inherited(name), expected, "{name}");
    }

    #[test]
    fn flags_and_descriptions_of_the_outer_build_stay_outside() {
        check("RUSTFLAGS", false);
        check("CARGO_ENCODED_RUSTFLAGS", false);
        check("CARGO_BUILD_RUSTFLAGS", false);
        check("CARGO_TARGET_DIR", false);
        check("CARGO_PROFILE_RELEASE_LTO", false);
        check("CARGO_CFG_TARGET_ARCH", false);
        check("RUSTC_WORKSPACE_WRAPPER", false);
        check("DEP_Z_INCLUDE", false);
    }

    #[test]
    fn places_proxies_and_the_toolchain_are_inherited() {
        check("PATH", true);
        check("HOME", true);
        check("CARGO_HOME", true);
        check("CARGO_MAKEFLAGS", true);
        check("CARGO_NET_OFFLINE", true);
        check("RUSTUP_TOOLCHAIN", true);
        check("https_proxy", true);
    }
}
