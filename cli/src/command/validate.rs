//! `pausebed validate FILE…`: every fault of the files, and nothing started.

use crate::completion;
use crate::exit::Exit;
use scenario;
use scenario::files::load;
use std::path::PathBuf;

/// Options of `validate`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Scenario files.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// Override a key, as for `run`.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Print the JSON Schema of scenario files instead.
    #[arg(long)]
    schema: bool,
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Exit {
    if options.schema {
        println!("{:#}", scenario::schema());
        return Exit::Good;
    }
    let mut exit = Exit::Good;
    let mut results = Vec::new();
    for file in &options.files {
        let name = file.display().to_string();
        match load(file, &options.sets) {
            Ok(loaded) if options.json => {
                let topology = &loaded.scenario.fabric.topology;
                results.push(serde_json::json!({
                    "file": name, "ok": true, "name": loaded.scenario.name,
                    "nodes": topology.nodes.len(), "links": topology.cables.len(),
                }));
            }
            Ok(loaded) => {
                let topology = &loaded.scenario.fabric.topology;
                say!(
                    "{name}: good: {} nodes, {} links, {} measures, {} expectations",
                    topology.nodes.len(),
                    topology.cables.len(),
                    loaded.scenario.measures.len(),
                    loaded.scenario.expectations.len(),
                );
                for warning in &loaded.scenario.warnings {
                    eprintln!("{}", warning.as_warning(file));
                }
            }
            Err(faults) => {
                alert!("{}", faults.trim_end());
                results.push(serde_json::json!({ "file": name, "ok": false, "faults": faults }));
                exit = Exit::Usage;
            }
        }
    }
    if options.json {
        println!("{:#}", serde_json::Value::Array(results));
    }
    exit
}
