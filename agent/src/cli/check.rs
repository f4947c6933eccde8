//! `fabricscope check`: reads the configuration and says what is wrong with it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Config;

/// Check a configuration file and do nothing else
///
/// Names every problem there is, with its line. The exit status is 0 if there is none, else 1.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Checks the file; problems go to `errors`, one a line.
pub(crate) fn run(args: &CheckArgs, out: &mut impl Write, errors: &mut impl Write) -> anyhow::Result<ExitCode> {
    match Config::read(&args.config) {
        Ok(_) => {
            writeln!(out, "{}: nothing is wrong", args.config.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            writeln!(errors, "{problems}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_and_fails() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("agent.toml");
        for (text, status, lines) in [("", ExitCode::SUCCESS, 0), ("a = 1\nverbs.latency = 1", ExitCode::FAILURE, 2)] {
            std::fs::write(&config, text).unwrap();
            let (mut out, mut errors) = (Vec::new(), Vec::new());
            let found = run(&CheckArgs { config: config.clone() }, &mut out, &mut errors).unwrap();
            assert_eq!(format!("{found:?}"), format!("{status:?}"));
            assert_eq!(String::from_utf8(errors).unwrap().lines().count(), lines);
        }
    }
}
