//! `pausebed compose FILE`: the scenario as a Compose file, or a stack file for a swarm.

use super::Exit;
use super::files::load_all;
use launch::compose::board::{self, Board};
use launch::compose::file::{Engine, Lab, Launcher, render, service_names};
use launch::compose::{image, secrets, subnet};
use launch::placement::Hosting;
use nix::unistd::{getegid, geteuid};
use report::export::grafana;
use scenario::render;
use std::path::{Path, PathBuf};

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
    /// Add a Prometheus that asks every daemon, and Grafana with the board under the profile "grafana". What
    /// they read, the lab's token in it, is written into DIR.
    #[arg(long, value_name = "DIR", conflicts_with = "swarm")]
    with_board: Option<PathBuf>,
    /// The image of Prometheus, instead of that of docker/prometheus.sh.
    #[arg(long, value_name = "NAME", requires = "with_board")]
    prometheus_image: Option<String>,
}

impl Options {
    /// Who watches, if anybody shall.
    fn board(&self) -> std::io::Result<Option<Board>> {
        let with = |folder: &PathBuf| {
            let image = self.prometheus_image.clone().unwrap_or_else(board::image);
            let user = (geteuid().as_raw(), getegid().as_raw());
            Ok(Board { folder: std::path::absolute(folder)?, image, user })
        };
        self.with_board.as_ref().map(with).transpose()
    }
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let loaded = match load_all(std::slice::from_ref(&options.file), &options.sets) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let Some(scenario) = loaded.first().map(|loaded| &loaded.scenario) else { return Exit::Usage };
    let (token, id) = match secrets() {
        Ok(secrets) => secrets,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Host;
        }
    };
    let (file, board) = match (std::path::absolute(&options.file), options.board()) {
        (Ok(file), Ok(board)) => (file, board),
        (Err(error), _) => return refused(&options.file, &error),
        (_, Err(error)) => {
            return refused(options.with_board.as_deref().unwrap_or(&options.file), &error);
        }
    };
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
        board: board.as_ref(),
    };
    if let Some(board) = &board
        && let Err(error) = board.write(&service_names(wiring, &hosting), &token, &grafana::board())
    {
        return refused(&board.folder, &error);
    }
    let engine = if options.swarm { Engine::Swarm } else { Engine::Compose };
    print!("{}", render(&lab, engine, wiring, &hosting));
    Exit::Good
}

fn refused(path: &Path, error: &std::io::Error) -> Exit {
    eprintln!("{}: {error}", path.display());
    Exit::Usage
}
