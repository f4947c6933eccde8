//! Trees of NIC counters: read from `fixtures/nic`, written into a folder, each with what must come out of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Something that must come out.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// This device, port and counter has this value.
    Value(String, Option<u32>, String, f64),
    /// This one stands at its end.
    Saturated(String, Option<u32>, String),
    /// The device has no such counter.
    Lacks(String, String),
    /// A counter of the device could not be read for this reason.
    Fails(String, String),
    /// The device is left alone.
    Quarantined(String),
    /// The device says this of what it belongs to: a key and its value.
    Belongs(String, String, String),
}

/// One host's counters.
#[derive(Clone, Debug, Default)]
pub struct Fixture {
    /// The file's name without its ending.
    pub name: String,
    /// Only holds for root.
    pub root: bool,
    /// What must come out.
    pub expected: Vec<Expected>,
    lines: Vec<Vec<String>>,
}

/// Every fixture, by name.
///
/// # Errors
///
/// If one cannot be read or understood.
pub fn all() -> Result<Vec<Fixture>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/nic");
    let entries = fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
            Fixture::parse(&name, &text)
        })
        .collect()
}

impl Fixture {
    /// From a description.
    ///
    /// # Errors
    ///
    /// Names the line that cannot be understood.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut fixture = Self { name: name.to_owned(), ..Self::default() };
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let parts: Vec<&str> = words.iter().map(String::as_str).collect();
            let owned = |text: &str| text.to_owned();
            match parts.as_slice() {
                ["root"] => fixture.root = true,
                ["expect", place, counter, value] => {
                    let (device, port) = place_of(place)?;
                    let value = value.parse().with_context(|| format!("{name}: {line}"))?;
                    fixture.expected.push(Expected::Value(device, port, owned(counter), value));
                }
                ["saturated", place, counter] => {
                    let (device, port) = place_of(place)?;
                    fixture.expected.push(Expected::Saturated(device, port, owned(counter)));
                }
                ["lacks", device, counter] => {
                    fixture.expected.push(Expected::Lacks(owned(device), owned(counter)));
                }
                ["fails", device, reason] => fixture.expected.push(Expected::Fails(owned(device), owned(reason))),
                ["belongs", device, key, value] => {
                    fixture.expected.push(Expected::Belongs(owned(device), owned(key), owned(value)));
                }
                ["quarantined", device] => fixture.expected.push(Expected::Quarantined(owned(device))),
                _ => fixture.lines.push(words),
            }
        }
        Ok(fixture)
    }

    /// Writes the tree into a folder that stands for `/sys`.
    ///
    /// # Errors
    ///
    /// If a line is not known or a file cannot be made.
    pub fn write(&self, root: &Path) -> Result<()> {
        let class = root.join("class/infiniband");
        for words in &self.lines {
            let parts: Vec<&str> = words.iter().map(String::as_str).collect();
            match parts.as_slice() {
                ["driver", device, bus] => driver(root, &class.join(device), bus)?,
                ["rxe", device, netdev] => file(&class.join(device).join("parent"), netdev.as_bytes())?,
                ["counters", place, values @ ..] => {
                    values_in(&place_folder(&class, place)?.join("counters"), values)?;
                }
                ["hw", place, values @ ..] => values_in(&place_folder(&class, place)?.join("hw_counters"), values)?,
                ["netdev", name, bus, values @ ..] => {
                    let folder = root.join("class/net").join(name);
                    driver(root, &folder, bus)?;
                    values_in(&folder.join("statistics"), values)?;
                }
                ["gid", place, netdev] => {
                    let folder = place_folder(&class, place)?;
                    file(&folder.join("gids/0"), b"fe80:0000:0000:0000:0000:0000:0000:0001\n")?;
                    file(&folder.join("gid_attrs/ndevs/0"), netdev.as_bytes())?;
                }
                ["function", path, address] => function(root, path, address)?,
                ["virtual", address, number, physical] => {
                    let folder = |address: &str| root.join("devices").join(address);
                    link(&folder(physical), &folder(address).join("physfn"))?;
                    link(&folder(address), &folder(physical).join(format!("virtfn{number}")))?;
                }
                ["bond", name, members @ ..] => {
                    let net = root.join("class/net");
                    file(&net.join(name).join("bonding/slaves"), members.join(" ").as_bytes())?;
                    members.iter().try_for_each(|member| link(&net.join(name), &net.join(member).join("master")))?;
                }
                ["link", path, target] => link(Path::new(target), &class.join(path))?,
                ["folder", path] => fs::create_dir_all(class.join(path))?,
                ["bytes", path, count] => file(&class.join(path), &vec![0xff; count.parse()?])?,
                _ => bail!("{}: nobody understands {:?}", self.name, words.join(" ")),
            }
        }
        Ok(())
    }
}

/// `mlx5_0/1` or `mlx5_0`.
fn place_of(text: &str) -> Result<(String, Option<u32>)> {
    Ok(match text.split_once('/') {
        Some((device, port)) => (device.to_owned(), Some(port.parse()?)),
        None => (text.to_owned(), None),
    })
}

fn place_folder(class: &Path, text: &str) -> Result<PathBuf> {
    let (device, port) = place_of(text)?;
    Ok(match port {
        Some(port) => class.join(device).join("ports").join(port.to_string()),
        None => class.join(device),
    })
}

/// A device with a link to its driver, as hardware has.
fn driver(root: &Path, device: &Path, bus: &str) -> Result<()> {
    if bus == "-" {
        return Ok(fs::create_dir_all(device)?);
    }
    let target = root.join("bus/drivers").join(bus);
    fs::create_dir_all(&target)?;
    let path = device.join("device/driver");
    // Devices of one function share it.
    if path.exists() { Ok(()) } else { link(&target, &path) }
}

/// A device of a PCI function, by its path in `class`.
fn function(root: &Path, path: &str, address: &str) -> Result<()> {
    let folder = root.join("devices").join(address);
    fs::create_dir_all(folder.join(path))?;
    link(&folder, &root.join("class").join(path).join("device"))
}

fn values_in(folder: &Path, values: &[&str]) -> Result<()> {
    for value in values {
        let (name, text) = value.split_once('=').with_context(|| format!("no value in {value}"))?;
        file(&folder.join(name), format!("{}\n", text.replace('_', " ")).as_bytes())?;
    }
    Ok(())
}

fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a path without a folder")?)?;
    fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}

fn link(target: &Path, path: &Path) -> Result<()> {
    fs::create_dir_all(path.parent().context("a path without a folder")?)?;
    symlink(target, path).with_context(|| format!("link {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fixture_is_understood_and_can_be_written() {
        let fixtures = all().unwrap();
        assert!(fixtures.len() >= 11, "{}", fixtures.len());
        for fixture in &fixtures {
            let folder = tempfile::tempdir().unwrap();
            fixture.write(folder.path()).unwrap();
            assert_eq!(fixture.expected.is_empty(), fixture.name == "nothing", "{}", fixture.name);
        }
    }

    #[test]
    fn lines_say_what_is_in_which_file() {
        let fixture = Fixture::parse("x", "driver a b\nhw a/2 n=1_2\nexpect a/2 c 1.5\nroot\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fixture.write(folder.path()).unwrap();
        let file = folder.path().join("class/infiniband/a/ports/2/hw_counters/n");
        assert_eq!(fs::read_to_string(file).unwrap(), "1 2\n");
        assert_eq!(fixture.expected, [Expected::Value("a".to_owned(), Some(2), "c".to_owned(), 1.5)]);
        assert!(fixture.root);
        assert!(Fixture::parse("x", "odd line").unwrap().write(folder.path()).is_err());
        assert!(Fixture::parse("x", "expect a/b c 1").is_err());
    }
}
