//! `fabricscope bursts convert`: a sample file in another format.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::bursts::file::{self, Format};

/// Write a sample file in another format
///
/// Reads Parquet files of fabricscope and files of the public Millisampler data set; what a file is, its content tells.
/// What to write is told by the end of the output's name: .parquet, .json (one JSON object in the layout of
/// Millisampler), .json.gz or .txt.gz (the same, packed), or .csv. Nothing is written if the input cannot be read, or
/// if the format cannot hold it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = columns_help())]
pub(crate) struct ConvertArgs {
    /// The sample file to read
    input: PathBuf,

    /// The file to write
    #[arg(value_parser = named)]
    output: Named,
}

/// A file with the format that its name tells.
#[derive(Clone, Debug)]
struct Named {
    path: PathBuf,
    format: Format,
}

fn named(text: &str) -> Result<Named, String> {
    let format = Format::of(text).ok_or_else(|| format!("its name must end in {}", Format::endings()))?;
    Ok(Named { path: PathBuf::from(text), format })
}

fn columns_help() -> String {
    format!(
        "Columns of a sample file, as Parquet and as CSV; a field that the source does not measure is null or empty:\n{}",
        file::columns_help()
    )
}

/// Reads the one and writes the other.
pub(super) fn run(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let series = file::read(&args.input)?;
    let written = file::write_as(&args.output.path, &series, args.output.format)?;
    eprintln!("{}: {} samples, {} bytes", args.output.path.display(), written.samples, written.bytes);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_format_or_what_it_may_end_in() {
        assert_eq!(named("a.b.csv").unwrap().format, Format::Csv);
        let refused = named("a.xml").unwrap_err();
        assert!(refused.contains(".parquet") && refused.contains(".txt.gz"), "{refused}");
    }
}
