//! `pausebed graph FILE`: draws the fabric of a scenario file.

use super::files::load_one;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use report::graph;
use std::path::PathBuf;

/// Options of `graph`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A scenario file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format of the picture.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Dot)]
    format: Format,
    /// Override a key, as for run.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Graphviz.
    Dot,
    /// Mermaid, which README files show as a picture.
    Mermaid,
    /// SVG for browsers.
    Svg,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let scenario = load_one(&options.file, &options.sets)?.scenario;
    let topology = &scenario.fabric.drawn_topology();
    let picture = match options.format {
        Format::Dot => graph::dot(&scenario.name, topology),
        Format::Mermaid => graph::mermaid(topology),
        Format::Svg => graph::svg::svg(&scenario.name, topology),
    };
    match &options.output {
        None => print!("{picture}"),
        Some(path) => std::fs::write(path, picture).map_err(Failure::cannot_write(path))?,
    }
    Ok(Exit::Good)
}
