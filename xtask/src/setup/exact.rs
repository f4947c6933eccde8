//! Fetches one exact version of a Debian package: a suite may carry several, and apt takes the newest if not told.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt;
use crate::runner::{on_path, output};

/// Downloads `package`, of the newest version of `suite` that matches `version` (a `*` at its end stands for
/// anything), into `dest`, through an apt view of its own; apt verifies it by the machine's keys.
///
/// # Errors
/// If this machine's apt names no Debian mirror, or the suite has no such version.
pub(super) fn download(suite: &str, package: &str, version: &str, dest: &Path) -> Result<PathBuf> {
    anyhow::ensure!(on_path("apt-get"), "this machine has no apt");
    let view = dest.join(format!("view-{suite}"));
    for folder in ["lists/partial", "cache/archives/partial"] {
        let folder = view.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let config = view.join("apt.conf");
    let sources = apt::source_line(suite)? + "\n";
    for (path, text) in
        [(&view.join("status"), String::new()), (&view.join("sources.list"), sources), (&config, configuration(&view))]
    {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.arg("-c").arg(&config).arg("-qq").current_dir(dest);
        apt
    };
    output(apt().arg("update")).with_context(|| format!("cannot read Debian's suite {suite}"))?;
    output(apt().arg("download").arg(format!("{package}={version}")))
        .with_context(|| format!("Debian's suite {suite} has no {package} {version}"))?;
    let mut files = fs::read_dir(dest)
        .with_context(|| format!("cannot read {}", dest.display()))?
        .flatten()
        .map(|file| file.path());
    files.find(|path| path.extension() == Some(OsStr::new("deb"))).context("apt fetched no package")
}

/// apt's settings for a view in `folder`. The machine's own are read first, so that its proxy is used; its hooks
/// are cleared, since they tend the machine's cache. `_apt` cannot enter a home folder: apt's own user does it.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "#clear APT::Update;\n#clear DPkg::Post-Invoke;\n\
         Dir::State \"{folder}\";\nDir::State::lists \"{folder}/lists\";\nDir::State::status \"{folder}/status\";\n\
         Dir::Cache \"{folder}/cache\";\nDir::Etc::sourcelist \"{folder}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\nDir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\nAPT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\nAcquire::Retries \"3\";\n"
    )
}
