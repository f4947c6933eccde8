//! Fetches a Debian package through an apt view of its own; the machine's sources stay as they are.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use ebpf_build::cache;

use crate::runner::{on_path, output, run};

/// Downloads `packages` of one suite (each a name, or `name=version` where the version may end in `*`) into
/// `dest` and returns the files. apt verifies them by the keys the machine already trusts.
///
/// # Errors
/// If this is no machine with Debian's sources, or the suite has no such package.
pub(super) fn download(suite: &str, packages: &[&str], dest: &Path) -> Result<Vec<PathBuf>> {
    if !on_path("apt-get") {
        bail!("this machine has no apt");
    }
    let (mirror, keyring) = mirror(Path::new("/etc/apt"))?;
    let view = cache::dir()?.join("apt").join(suite);
    for folder in ["lists/partial", "cache/archives/partial"] {
        let folder = view.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::create_dir_all(dest).with_context(|| format!("cannot create {}", dest.display()))?;
    let signed = keyring.map_or_else(String::new, |path| format!("[signed-by={path}] "));
    let (sources, config) = (view.join("sources.list"), view.join("apt.conf"));
    let write =
        |path: &Path, text: String| fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    write(&view.join("status"), String::new())?;
    write(&sources, format!("deb {signed}{mirror} {suite} main\n"))?;
    write(&config, configuration(&view))?;

    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.arg("-c").arg(&config).args(["-qq"]).args(arguments).current_dir(dest);
        apt
    };
    run(&mut apt(&["update"])).with_context(|| format!("cannot read the suite {suite} at {mirror}"))?;
    output(apt(&["download"]).args(packages)).with_context(|| format!("{suite} has no {}", packages.join(", ")))?;
    let files = fs::read_dir(dest).with_context(|| format!("cannot read {}", dest.display()))?;
    let files = files.flatten().map(|entry| entry.path());
    Ok(files.filter(|path| path.extension() == Some(OsStr::new("deb"))).collect())
}

/// apt's settings for a view in `folder`. The machine's own are read first, so that its proxy is used; its hooks
/// are cleared, since they tend the machine's cache. `_apt` cannot enter a home folder: apt's own user does it.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "#clear APT::Update;\n#clear DPkg::Post-Invoke;\n#clear Acquire::IndexTargets::deb::DEP-11;\n\
         Dir::State \"{folder}\";\nDir::State::lists \"{folder}/lists\";\nDir::State::status \"{folder}/status\";\n\
         Dir::Cache \"{folder}/cache\";\nDir::Etc::sourcelist \"{folder}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
         Acquire::Retries \"3\";\n"
    )
}

/// The Debian mirror that the machine's own sources under `etc` name, and the keyring that signs it if they
/// say one. Backports and testing lie on the same mirrors; the security archive does not.
fn mirror(etc: &Path) -> Result<(String, Option<String>)> {
    let parts = fs::read_dir(etc.join("sources.list.d"));
    let parts = parts.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = parts.collect();
    files.sort();
    files.insert(0, etc.join("sources.list"));
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Some(found) = main_archive(&text) {
            return Ok(found);
        }
    }
    bail!("the apt sources of this machine name no Debian mirror")
}

/// The first archive in a sources file (either form) whose path ends in `/debian`.
fn main_archive(sources: &str) -> Option<(String, Option<String>)> {
    let is_archive = |word: &&str| word.contains("://") && word.trim_end_matches('/').ends_with("/debian");
    for stanza in sources.split("\n\n") {
        let lines = stanza.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let uri = lines.clone().flat_map(str::split_whitespace).find(is_archive);
        let Some(uri) = uri else { continue };
        let keyring = lines.filter_map(keyring).next();
        return Some((uri.to_owned(), keyring));
    }
    None
}

fn keyring(line: &str) -> Option<String> {
    let value = line.strip_prefix("Signed-By:").or_else(|| line.split_once("signed-by=").map(|(_, rest)| rest))?;
    let path = value.trim().split([']', ' ']).next()?;
    path.starts_with('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sources: &str, expected: Option<(&str, Option<&str>)>) {
        let found = main_archive(sources);
        let found = found.as_ref().map(|(uri, keyring)| (uri.as_str(), keyring.as_deref()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_main_archive_is_found_in_both_forms() {
        check(
            "Types: deb\n# note\nURIs: http://mirror.example/debian\nSuites: a\nSigned-By: /k.gpg\n",
            Some(("http://mirror.example/debian", Some("/k.gpg"))),
        );
        check(
            "deb http://other.example/x y main\n\ndeb [arch=amd64 signed-by=/k.gpg] https://m.example/debian/ s main\n",
            Some(("https://m.example/debian/", Some("/k.gpg"))),
        );
        check("deb http://m.example/debian s main\n", Some(("http://m.example/debian", None)));
    }

    #[test]
    fn other_archives_and_comments_are_no_mirror() {
        check("deb http://m.example/debian-security s main\n", None);
        check("# deb http://m.example/debian s main\n", None);
        check("", None);
    }
}
