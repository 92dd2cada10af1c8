//! `pausebed scenarios`: lists, prints and copies the scenario files that the program contains.

use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::library;
use crate::terminal::table::table;
use clap::Subcommand;
use scenario::files;
use scenario::keyfile::problem::did_you_mean;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `scenarios`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// List all files with their purposes
    List {
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Print a file, with what it takes from the file that it varies
    Show {
        /// Its name, as in pfister/case4-none, or a file of your own
        #[arg(value_name = "NAME|FILE", add = completion::scenarios())]
        name: String,
    },
    /// Copy a file, or the files of a folder, with its path below DIR
    Copy {
        /// The name of the file, as in pfister/case4-none, or of the folder, as in pfister
        #[arg(add = completion::scenarios())]
        name: String,
        /// The folder to copy to
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    match &options.what {
        What::List { json: true } => println!("{}", document()),
        What::List { json: false } => say!("{}", listed()),
        What::Show { name } => print!("{}", shown(name)?),
        What::Copy { name, folder } => {
            let files = library::below(name);
            if files.is_empty() {
                return Err(unknown(name));
            }
            for (name, text) in files {
                let file = folder.join(format!("{name}.toml"));
                copy(&file, text)?;
                println!("{}", file.display());
            }
        }
    }
    Ok(Exit::Good)
}

fn shown(name: &str) -> Result<String, Failure> {
    let file = Path::new(name);
    match library::resolve(name) {
        Some(resolved) => Ok(resolved.text),
        None if file.is_file() => Ok(files::read(file).map_err(Failure::usage)?.text),
        None => Err(unknown(name)),
    }
}

fn listed() -> String {
    let rows =
        library::SCENARIOS.iter().map(|(name, text)| [(*name).to_owned(), library::purpose(text)]);
    table(&["scenario", "purpose"], [], rows)
}

fn document() -> String {
    let row =
        |(name, text): &(&str, &str)| json!({ "name": name, "purpose": library::purpose(text) });
    format!("{:#}", library::SCENARIOS.iter().map(row).collect::<serde_json::Value>())
}

/// Writes `text` to `file`; a file of another content stays.
fn copy(file: &Path, text: &str) -> Result<(), Failure> {
    if let Ok(there) = fs::read(file) {
        let other = || Failure::usage(format!("{} is there with another content", file.display()));
        return if there == text.as_bytes() { Ok(()) } else { Err(other()) };
    }
    let written =
        file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    written.map_err(Failure::cannot_write(file))
}

fn unknown(name: &str) -> Failure {
    let hint = did_you_mean(name, library::SCENARIOS.iter().map(|(name, _)| *name));
    // Where nothing resembles the name, the hint would list all.
    let hint = if hint.starts_with("did") { hint + " " } else { String::new() };
    Failure::usage(format!(
        "there is no scenario {name:?}\n    hint: {hint}pausebed scenarios list shows all"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_path_and_never_replaces_another_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copy = |name: &str| {
            let (name, folder) = (name.to_owned(), folder.path().to_owned());
            run(&Options { what: What::Copy { name, folder } }).map_err(|failure| failure.exit)
        };
        assert_eq!(copy("host"), Ok(Exit::Good));
        let file = folder.path().join("host/calibrate.toml");
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), library::find("host/calibrate"));
        assert_eq!(copy("host/calibrate"), Ok(Exit::Good));
        fs::write(&file, "mine").expect("the folder is there");
        assert_eq!(copy("host/calibrate"), Err(Exit::Usage));
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("mine"));
        assert_eq!(copy("host/calibrat"), Err(Exit::Usage));
    }

    #[test]
    fn an_unknown_name_has_a_hint() {
        assert!(unknown("pfister/case4-non").message.contains("pfister/case4-none"));
    }
}
