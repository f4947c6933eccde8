//! Debian packages through a private apt view for each suite; nothing is installed on the host.
//!
//! A view is apt with its own lists, cache and source list, and with the mirror and the keyring that the machine's own
//! apt sources name; only the suite differs. apt verifies the signatures as always. The machine's own sources, lists
//! and package database are neither changed nor asked. Measured: lists of one suite 0.3 to 2.5 s, once a day.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

/// Lists older than this are fetched again before a package is chosen.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Flavours that a pattern does not mean unless it names them.
const FLAVOURS_LEFT_OUT: &[&str] = &["unsigned", "dbg", "cloud", "rt"];

/// Names a mirror by hand, for machines whose own apt sources name no Debian mirror.
const MIRROR_VARIABLE: &str = "FABRICSCOPE_DEBIAN_MIRROR";

/// The folder for everything that is fetched: `$FABRICSCOPE_CACHE`, `$XDG_CACHE_HOME/fabricscope` or
/// `~/.cache/fabricscope`.
///
/// # Errors
/// When none of the three variables that decide it is set.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = variable("FABRICSCOPE_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|dir| dir.join("fabricscope")))
        .or_else(|| variable("HOME").map(|dir| dir.join(".cache/fabricscope")))
        .context("no folder for downloads: set FABRICSCOPE_CACHE or HOME")?;
    std::path::absolute(&dir).with_context(|| format!("find {}", dir.display()))
}

/// Downloads the packages of one suite into `dest` and returns the files, in the order asked for.
///
/// A package is a name or a pattern with `*`: the newest name that matches, without the unsigned, debug, cloud and
/// real-time flavours; `name=version` is that version of it. A file that is there already is checked by apt and not
/// fetched again.
///
/// # Errors
/// When no mirror is known, the lists cannot be had, nothing matches, or a download fails after retries.
pub(crate) fn download(suite: &str, packages: &[&str], dest: &Path) -> Result<Vec<PathBuf>> {
    let view = View::open(suite)?;
    let names = packages.iter().map(|package| view.resolve(package)).collect::<Result<Vec<_>>>()?;
    fs::create_dir_all(dest).with_context(|| format!("make {}", dest.display()))?;
    let attempt = |view: &View| -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for name in &names {
            let line = view.output("apt-get", ["download", "--print-uris", name.as_str()])?;
            let file = file_of_uri_line(&line).with_context(|| format!("package {name} in {suite}: no file named"))?;
            files.push(dest.join(file));
        }
        let mut command = view.command("apt-get");
        run(command.args(["-q", "download"]).args(&names).current_dir(dest))?;
        Ok(files)
    };
    // A point release between the last update and now removes files from the mirror: fresh lists name the new ones.
    attempt(&view).or_else(|_| view.update().and_then(|()| attempt(&view)))
}

/// Downloads the packages and all they depend on (no recommendations) as if the machine had no package at all.
///
/// # Errors
/// As [`download`], and when a dependency cannot be resolved.
pub(crate) fn download_with_dependencies(suite: &str, packages: &[&str], dest: &Path) -> Result<Vec<PathBuf>> {
    let view = View::open(suite)?;
    fs::create_dir_all(dest.join("partial")).with_context(|| format!("make {}", dest.display()))?;
    let archives = format!("Dir::Cache::archives={}/", dest.display());
    let attempt = |view: &View| {
        let mut command = view.command("apt-get");
        command.args(["-q", "-y", "--download-only", "--no-install-recommends", "-o", &archives, "install"]);
        run(command.args(packages))
    };
    attempt(&view).or_else(|_| view.update().and_then(|()| attempt(&view)))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(dest).with_context(|| format!("list {}", dest.display()))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("deb")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The names of the packages that one package cannot do without, the first of each set of alternatives.
///
/// # Errors
/// When the suite has no such package.
pub(crate) fn dependencies(suite: &str, package: &str) -> Result<Vec<String>> {
    let view = View::open(suite)?;
    let text = view.output("apt-cache", ["show", "--no-all-versions", package])?;
    Ok(depends_of(&text).into_iter().map(str::to_owned).collect())
}

/// Unpacks packages into a folder, without their scripts.
///
/// # Errors
/// When the folder cannot be made or a package is broken.
pub(crate) fn unpack(files: &[PathBuf], into: &Path) -> Result<()> {
    fs::create_dir_all(into).with_context(|| format!("make {}", into.display()))?;
    for file in files {
        run(Command::new("dpkg-deb").arg("-x").arg(file).arg(into))?;
    }
    Ok(())
}

/// One line for a source list: the machine's mirror and keyring with another suite.
///
/// # Errors
/// When the machine's own sources name no Debian mirror and none was given by hand.
pub(crate) fn source_line(suite: &str) -> Result<String> {
    let (mirror, keyring) = machine_mirror()?;
    Ok(format!("deb [target=Packages signed-by={keyring}] {mirror} {suite} main"))
}

/// Runs a command quietly; its output appears in the error only.
///
/// # Errors
/// When it cannot start or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let result = command.output().with_context(|| format!("run {program}: is it installed?"))?;
    let text = String::from_utf8_lossy(&result.stdout).into_owned();
    if !result.status.success() {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        let complaint = String::from_utf8_lossy(&result.stderr);
        bail!("{program} {}: {}\n{text}{complaint}", arguments.join(" "), result.status);
    }
    Ok(text)
}

/// apt with lists, cache and sources of its own.
struct View {
    suite: String,
    dir: PathBuf,
}

impl View {
    fn open(suite: &str) -> Result<Self> {
        let view = View { suite: suite.to_owned(), dir: cache_dir()?.join("apt").join(suite) };
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(view.dir.join(folder)).with_context(|| format!("make {}", view.dir.display()))?;
        }
        let lock = fs::File::create(view.dir.join("lock")).context("lock the apt view")?;
        lock.lock().context("lock the apt view")?;
        // The keyring or the mirror of the machine may have changed since: both files are cheap to write each time.
        fs::write(view.dir.join("status"), "")?;
        fs::write(view.dir.join("sources.list"), source_line(suite)? + "\n")?;
        fs::write(view.config(), view.config_text())?;
        let fresh = fs::metadata(view.stamp())
            .and_then(|stamp| stamp.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age < LISTS_AGE_MAX));
        if !fresh {
            view.update()?;
        }
        Ok(view)
    }

    fn config(&self) -> PathBuf {
        self.dir.join("apt.conf")
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("updated")
    }

    /// Read after the machine's own configuration (which may name a proxy), so it wins over it. The hooks of the
    /// machine are cleared: they would act on the machine's own state.
    fn config_text(&self) -> String {
        let dir = self.dir.display();
        format!(
            "Dir::State \"{dir}/state\";\nDir::State::status \"{dir}/status\";\nDir::Cache \"{dir}/cache\";\n\
             Dir::Etc::sourcelist \"{dir}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
             Acquire::Retries \"5\";\nAcquire::Languages \"none\";\nAPT::Sandbox::User \"root\";\n\
             APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; }};\n\
             #clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n#clear DPkg::Post-Invoke;\n#clear DPkg::Pre-Install-Pkgs;\n"
        )
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(self.config()).env("LC_ALL", "C").env_remove("APT_CONFIG");
        command
    }

    fn output<const N: usize>(&self, program: &str, arguments: [&str; N]) -> Result<String> {
        output(self.command(program).args(arguments))
    }

    fn update(&self) -> Result<()> {
        run(self.command("apt-get").args(["-q", "-o", "APT::Update::Error-Mode=any", "update"]))
            .with_context(|| format!("fetch the package lists of Debian {}", self.suite))?;
        fs::write(self.stamp(), "").context("note the time of the update")
    }

    fn resolve(&self, pattern: &str) -> Result<String> {
        // apt itself says when it has no such version.
        if pattern.contains('=') {
            return Ok(pattern.to_owned());
        }
        let prefix = pattern.split('*').next().unwrap_or_default();
        let names = self.output("apt-cache", ["pkgnames", prefix])?;
        newest(pattern, names.lines()).map(str::to_owned).with_context(|| {
            format!(
                "no package {pattern} in Debian {}: has its version moved on? see the lab's kernel table",
                self.suite
            )
        })
    }
}

/// The mirror and the keyring for Debian's archive, as the machine's own apt sources say.
fn machine_mirror() -> Result<(String, String)> {
    const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
    if let Ok(mirror) = std::env::var(MIRROR_VARIABLE) {
        return Ok((mirror, KEYRING.to_owned()));
    }
    let format = "$(REPO_URI) $(SIGNED_BY)";
    let targets = output(Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]))
        .context("ask apt for the machine's mirror")?;
    let (mirror, keyring) = choose_mirror(targets.lines()).with_context(|| {
        format!("the machine's apt sources name no Debian mirror: set {MIRROR_VARIABLE} to the address of one")
    })?;
    let keyring = keyring.unwrap_or(KEYRING);
    ensure!(Path::new(keyring).exists(), "{keyring} is missing: install the package debian-archive-keyring");
    Ok((mirror.to_owned(), keyring.to_owned()))
}

/// The main archive among lines of address and keyring: the one whose path is `/debian`.
fn choose_mirror<'a>(lines: impl Iterator<Item = &'a str>) -> Option<(&'a str, Option<&'a str>)> {
    lines.filter_map(|line| line.trim().split_once(' ').or(Some((line.trim(), "")))).find_map(|(address, keyring)| {
        let is_debian = address.trim_end_matches('/').ends_with("/debian");
        // apt leaves the word as it is where a source names no keyring of its own.
        is_debian.then(|| (address, Some(keyring.trim()).filter(|keyring| keyring.starts_with('/'))))
    })
}

/// The file of a line `'ADDRESS' FILE SIZE HASH`.
fn file_of_uri_line(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with('\''))?.split_whitespace().nth(1)
}

/// The names in the field `Depends` of a package's description.
fn depends_of(description: &str) -> Vec<&str> {
    let field = description.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
    let names = field.split(',').filter_map(|set| set.split(['|', '(', ':']).next()).map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// The newest of the names that match the pattern.
fn newest<'a>(pattern: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let left_out =
        |name: &str| name.split(['-', '+']).any(|part| FLAVOURS_LEFT_OUT.contains(&part) && !pattern.contains(part));
    names.filter(|name| matches(pattern, name) && !left_out(name)).max_by(|a, b| compare_versions(a, b))
}

/// Whether the name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    name.strip_prefix(head)
        .is_some_and(|rest| (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(tail, rest))))
}

/// The order of Debian versions: digits by value, `~` before everything, letters before other signs.
fn compare_versions(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        let weight = |text: &[u8]| match text.first() {
            Some(b'~') => -1,
            None | Some(b'0'..=b'9') => 0,
            Some(sign) if sign.is_ascii_alphabetic() => i32::from(*sign),
            Some(sign) => i32::from(*sign) + 256,
        };
        while weight(a) != 0 || weight(b) != 0 {
            match weight(a).cmp(&weight(b)) {
                Ordering::Equal => (a, b) = (&a[1..], &b[1..]),
                other => return other,
            }
        }
        let (number_a, number_b) = (take_number(&mut a), take_number(&mut b));
        match number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b)) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    Ordering::Equal
}

/// Splits the leading digits off, without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let length = text.iter().take_while(|sign| sign.is_ascii_digit()).count();
    let (number, rest) = text.split_at(length);
    *text = rest;
    let zeros = number.iter().take_while(|sign| **sign == b'0').count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_newest(pattern: &str, names: &[&str], expected: Option<&str>) {
        assert_eq!(newest(pattern, names.iter().copied()), expected);
    }

    #[test]
    fn the_newest_match_without_odd_flavours_is_taken() {
        let kernels = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-50-amd64",
            "linux-image-6.1.0-51-amd64-unsigned",
            "linux-image-6.1.0-51-rt-amd64",
            "linux-image-6.1.0-51-cloud-amd64",
            "linux-image-6.1.0-51-amd64-dbg",
            "linux-image-6.10.0-1-amd64",
        ];
        check_newest("linux-image-6.1.*-amd64", &kernels, Some("linux-image-6.1.0-50-amd64"));
        check_newest("linux-image-6.1.*-cloud-amd64", &kernels, Some("linux-image-6.1.0-51-cloud-amd64"));
        check_newest("linux-image-6.10.0-1-amd64", &kernels, Some("linux-image-6.10.0-1-amd64"));
        check_newest("linux-image-6.2.*-amd64", &kernels, None);
        check_newest(
            "linux-image-6.12.*+deb13-amd64",
            &["linux-image-6.12.107+deb13-amd64", "linux-image-6.12.117+deb13-amd64", "linux-image-6.12.9+deb13-amd64"],
            Some("linux-image-6.12.117+deb13-amd64"),
        );
    }

    #[test]
    fn versions_follow_debian_order() {
        let ascending = ["1.0~rc1", "1.0", "1.0a", "1.0+b1", "1.0-1", "1.2", "1.10", "1.010.1", "2"];
        for (index, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(compare_versions(a, b), index.cmp(&other), "{a} against {b}");
            }
        }
        assert_eq!(compare_versions("1.010", "1.10"), Ordering::Equal);
    }

    #[test]
    fn the_main_archive_is_the_mirror() {
        let lines = [
            "http://mirror.example/debian-security/ /k.gpg",
            "http://mirror.example/debian/ /k.gpg",
            "http://other.example/debian/ $(SIGNED_BY)",
        ];
        assert_eq!(choose_mirror(lines.into_iter()), Some(("http://mirror.example/debian/", Some("/k.gpg"))));
        assert_eq!(choose_mirror(lines[2..].iter().copied()), Some(("http://other.example/debian/", None)));
        assert_eq!(choose_mirror(["http://mirror.example/ubuntu/ "].into_iter()), None);
    }

    #[test]
    fn a_dependency_is_a_bare_name() {
        let description = "Package: a\nDepends: b (>= 1), c:any | d, e\nSuggests: f\n";
        assert_eq!(depends_of(description), ["b", "c", "e"]);
        assert!(depends_of("Package: a\n").is_empty());
    }

    #[test]
    fn the_file_name_stands_second() {
        let line = "NOTE: x\n'http://m/p/a_1%3a2_amd64.deb' a_1%3a2_amd64.deb 12 SHA256:ab\n";
        assert_eq!(file_of_uri_line(line), Some("a_1%3a2_amd64.deb"));
        assert_eq!(file_of_uri_line("nothing"), None);
    }
}
