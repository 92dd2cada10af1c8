//! `pausebed compose FILE`: the scenario as a Compose file, or a stack file for a swarm.

use super::files::load_one;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use launch::compose::file::{ContainerLab, Launcher, OutFolder, render, service_names};
use launch::compose::monitoring::{self, Monitoring};
use launch::compose::service::{Engine, Labels};
use launch::compose::{image, secrets, subnet};
use launch::placement::Hosting;
use nix::sys::stat::{Mode, SFlag, fchmod, fstat};
use nix::unistd::{getegid, geteuid};
use report::export::grafana;
use scenario::render;
use std::path::PathBuf;

/// Options of `compose`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The scenario file. It is not copied: the engine reads it at its path.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a stack file for Docker Swarm.
    #[arg(long)]
    swarm: bool,
    /// Override a key of the file, as in run.placement="device"; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Have the launcher write the run directory into DIR, which is made here. In a swarm the machine of the launcher
    /// must have it, too.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The image of all services, instead of that of this version.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Add Prometheus, which scrapes every daemon, and Grafana with a dashboard under the profile "grafana".
    /// Their configuration is written into DIR; it contains the token of the lab.
    #[arg(long, value_name = "DIR", conflicts_with = "swarm")]
    with_board: Option<PathBuf>,
    /// The image of Prometheus, instead of that of docker/prometheus.sh.
    #[arg(long, value_name = "NAME", requires = "with_board")]
    prometheus_image: Option<String>,
}

impl Options {
    fn out(&self) -> Result<Option<OutFolder>, Failure> {
        let Some(folder) = &self.out else { return Ok(None) };
        std::fs::create_dir_all(folder).map_err(Failure::bad_file(folder))?;
        let absolute = std::path::absolute(folder).map_err(Failure::bad_file(folder))?;
        let owner = (geteuid().as_raw(), getegid().as_raw());
        Ok(Some(OutFolder { path: absolute.to_string_lossy().into_owned(), owner }))
    }

    fn monitoring(&self) -> Result<Option<Monitoring>, Failure> {
        let Some(folder) = &self.with_board else { return Ok(None) };
        let image = self.prometheus_image.clone().unwrap_or_else(monitoring::image);
        let user = (geteuid().as_raw(), getegid().as_raw());
        let absolute = std::path::absolute(folder).map_err(Failure::bad_file(folder))?;
        Ok(Some(Monitoring { folder: absolute, image, user }))
    }
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let scenario = load_one(&options.file, &options.sets)?.scenario;
    let (token, id) = secrets()?;
    let file = std::path::absolute(&options.file).map_err(Failure::bad_file(&options.file))?;
    let monitoring = options.monitoring()?;
    let lab = render::render(&scenario);
    let image = options.image.clone().unwrap_or_else(image);
    let arguments = options.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]).collect();
    let file = file.to_string_lossy().into_owned();
    let launcher = Launcher::Service { file, arguments, out: options.out()? };
    let wiring = &lab.fabric.wiring;
    let hosting = Hosting::elsewhere(wiring, scenario.run.placement);
    let lab = ContainerLab {
        scenario: &scenario.name,
        // The user who starts the lab removes it.
        labels: Labels { id: &id, owner: "" },
        token: token.text(),
        image: &image,
        subnet: subnet(&id, 0),
        realtime: scenario.run.realtime,
        launcher: &launcher,
        monitoring: monitoring.as_ref(),
    };
    if let Some(monitoring) = &monitoring {
        let services = service_names(wiring, &hosting);
        let written = monitoring.write(&services, &token, grafana::DASHBOARD);
        written.map_err(Failure::bad_file(&monitoring.folder))?;
    }
    let engine = if options.swarm { Engine::Swarm } else { Engine::Compose };
    keep_private()?;
    print!("{}", render(&lab, engine, wiring, &hosting));
    Ok(Exit::Good)
}

/// Takes from others the right to read the file that the shell has opened for standard output: it gets the token.
fn keep_private() -> Result<(), Failure> {
    let out = std::io::stdout();
    let known = fstat(&out).map_err(Failure::host)?;
    let mode = Mode::from_bits_truncate(known.st_mode);
    let is_file = known.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits();
    if is_file && mode.intersects(Mode::S_IRWXG | Mode::S_IRWXO) {
        let failed = |error| Failure::host(format!("others may read the output: {error}"));
        fchmod(&out, mode & Mode::S_IRWXU).map_err(failed)?;
    }
    Ok(())
}
