//! `pausebed graph FILE`: the fabric as a picture, from the file alone.

use super::Exit;
use report::graph;
use scenario::files::load;
use std::path::PathBuf;

/// Options of `graph`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A scenario file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The language of the picture.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Dot)]
    format: Format,
    /// Override a key, as for run.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// The languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Graphviz.
    Dot,
    /// What README files show as a picture.
    Mermaid,
    /// A picture for browsers.
    Svg,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let scenario = match load(&options.file, &options.sets) {
        Ok(loaded) => loaded.scenario,
        Err(faults) => {
            eprintln!("{}", faults.trim_end());
            return Exit::Usage;
        }
    };
    let topology = &scenario.fabric.topology;
    let picture = match options.format {
        Format::Dot => graph::dot(&scenario.name, topology),
        Format::Mermaid => graph::mermaid(topology),
        Format::Svg => graph::svg::svg(&scenario.name, topology),
    };
    match &options.output {
        None => print!("{picture}"),
        Some(path) => {
            if let Err(error) = std::fs::write(path, picture) {
                eprintln!("{}: {error}", path.display());
                return Exit::Host;
            }
        }
    }
    Exit::Good
}
