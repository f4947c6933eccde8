//! DuckDB from PyPI: a reader of Parquet that this project has no part in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::command::{run, tail, target};

/// The version that is brought, so that the same one reads everywhere.
const VERSION: &str = "2.0.1";

/// How long fetching may take.
const FETCH: Duration = Duration::from_secs(300);

/// How long a query may take.
const QUERY: Duration = Duration::from_secs(60);

/// Prints what DuckDB answers, one JSON array a row.
const ASK: &str = "\
import sys, json, duckdb
for row in duckdb.sql(sys.argv[1]).fetchall():
    print(json.dumps([value if isinstance(value, (int, float, str, type(None))) else str(value) for value in row]))
";

/// Runs a query; each row is an array.
///
/// # Errors
/// When there is no Python with pip, DuckDB is not to be had, or it refuses the query.
pub fn query(sql: &str) -> Result<Vec<Value>> {
    let library = library()?;
    let mut python = Command::new("python3");
    let seen = run(python.env("PYTHONPATH", &library).env("TZ", "UTC").args(["-c", ASK, sql]), QUERY)?;
    ensure!(seen.status.success(), "DuckDB on {sql}:\n{}", tail(&seen.stderr, 20));
    seen.stdout.lines().map(|line| serde_json::from_str(line).context("what DuckDB answers")).collect()
}

/// The folder that Python finds DuckDB in: below cargo's, fetched the first time.
fn library() -> Result<PathBuf> {
    let folder = target().join(format!("duckdb-{VERSION}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(target()).context("cargo's folder")?;
    // Two tests may fetch at one time: the first to be done is taken.
    let fresh = tempfile::Builder::new().prefix("duckdb-").tempdir_in(target()).context("a folder for DuckDB")?;
    let package = format!("duckdb=={VERSION}");
    let mut pip = Command::new("python3");
    let words = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target"];
    let seen = run(pip.args(words).arg(fresh.path()).arg(&package), FETCH)?;
    ensure!(seen.status.success(), "pip could not bring {package}:\n{}", tail(&seen.stderr, 20));
    match fs::rename(fresh.keep(), &folder) {
        Err(error) if !folder.is_dir() => Err(error).context("keep DuckDB"),
        _ => Ok(folder),
    }
}
