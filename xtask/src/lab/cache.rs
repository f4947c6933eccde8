//! What the lab keeps: each item is made once, under a lock, and appears whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::apt;

/// The lab's part of the cache folder.
pub(super) fn folder() -> Result<PathBuf> {
    let folder = apt::cache_dir()?.join("lab");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// Returns `item`, made by `make` in a folder beside it when it is not there yet.
///
/// # Errors
/// When `make` fails: nothing is kept then.
pub(super) fn once(item: &Path, what: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    if item.exists() {
        return Ok(item.to_owned());
    }
    let parent = item.parent().context("an item of the cache has a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
    let lock = File::create(item.with_added_extension("lock")).context("lock the cache")?;
    lock.lock().context("lock the cache")?;
    // Another run may have made it while this one waited.
    if item.exists() {
        return Ok(item.to_owned());
    }
    let start = Instant::now();
    eprintln!("lab: getting {what}");
    let half_made = item.with_added_extension("new");
    if half_made.exists() {
        fs::remove_dir_all(&half_made).with_context(|| format!("remove {}", half_made.display()))?;
    }
    fs::create_dir_all(&half_made).with_context(|| format!("make {}", half_made.display()))?;
    make(&half_made).with_context(|| format!("get {what}"))?;
    fs::rename(&half_made, item).with_context(|| format!("keep {}", item.display()))?;
    eprintln!("lab: got {what} in {:.1} s", start.elapsed().as_secs_f64());
    Ok(item.to_owned())
}
