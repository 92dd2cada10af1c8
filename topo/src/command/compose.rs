//! `pausebed compose FILE`: the scenario as a Compose file, or a stack file for a swarm.

use super::Exit;
use super::files::load_all;
use crate::launch::compose::file::{Engine, Lab, Launcher, render};
use crate::launch::compose::{image, secrets, subnet};
use crate::launch::placement::Hosting;
use crate::render;
use std::path::PathBuf;

/// Options of `compose`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The scenario file. It is not copied: the engine reads it where it is.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a stack file for Docker Swarm.
    #[arg(long)]
    swarm: bool,
    /// Override a key of the file, as in run.placement="device"; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// The image of all services, instead of that of this version.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let loaded = match load_all(std::slice::from_ref(&options.file), &options.sets) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let Some(scenario) = loaded.first().map(|loaded| &loaded.scenario) else { return Exit::Usage };
    let (secrets, file) = match (secrets(), std::path::absolute(&options.file)) {
        (Ok(secrets), Ok(file)) => (secrets, file),
        (Err(error), _) => {
            eprintln!("{error}");
            return Exit::Host;
        }
        (_, Err(error)) => {
            eprintln!("{}: {error}", options.file.display());
            return Exit::Usage;
        }
    };
    let (token, id) = secrets;
    let lab = render::render(scenario);
    let image = options.image.clone().unwrap_or_else(image);
    let arguments = options.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]).collect();
    let launcher = Launcher::Service { file: file.to_string_lossy().into_owned(), arguments };
    let wiring = &lab.fabric.wiring;
    let hosting = Hosting::elsewhere(wiring, scenario.run.placement);
    let lab = Lab {
        scenario: &scenario.name,
        id: &id,
        token: token.text(),
        image: &image,
        // Whoever starts it removes it.
        owner: "",
        subnet: subnet(&id, 0),
        realtime: scenario.run.realtime,
        launcher: &launcher,
    };
    let engine = if options.swarm { Engine::Swarm } else { Engine::Compose };
    print!("{}", render(&lab, engine, wiring, &hosting));
    Exit::Good
}
