//! The substrate `compose`: daemons in containers of this host, which join a launcher outside them.
//!
//! ```text
//!   remove what killed launchers left ─▶ create network and containers ─▶ listen at the network's
//!   gateway ─▶ start containers ─▶ all join ─▶ the run ─▶ down, in any case
//! ```
//!
//! Every object has labels with the lab's name and its launcher: boot identifier, process and its start time.
//! A launcher removes what it made. The next launcher removes what a killed launcher left.

mod engine;
pub mod file;
pub mod monitoring;
pub mod service;

use super::placement::Hosting;
use super::{FailureKind, Job, LaunchError, Outcome, Progress, block_on, joined};
use crate::error::OrHost;
use daemon::token::Token;
use engine::Docker;
use file::{ContainerLab, Launcher, PORT, gateway};
use ipnetwork::Ipv4Network;
use service::{Engine, Labels};
use tokio::net::TcpListener;

/// The environment variable that names the image.
const IMAGE_VARIABLE: &str = "PAUSEBED_IMAGE";
/// The number of networks that labs use.
const SUBNETS: u32 = 500;

/// The image of the daemons: that of the environment, else that of this version.
pub fn image() -> String {
    let own = || format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    std::env::var(IMAGE_VARIABLE).ok().filter(|name| !name.is_empty()).unwrap_or_else(own)
}

/// Whether an engine with Compose answers.
pub fn engine_answers() -> bool {
    Docker::find().is_ok()
}

/// Whether the engine has the image of the daemons.
pub fn has_image() -> bool {
    Docker::find().is_ok_and(|docker| docker.require_image(&image()).is_ok())
}

/// A token and an identifier of eight hexadecimal digits for a lab.
///
/// # Errors
/// If the system gives no random octets.
pub fn secrets() -> Result<(Token, String), LaunchError> {
    let make = || Token::make().or_host("no random octets");
    let id = make()?.text()[..8].to_owned();
    Ok((make()?, id))
}

/// The `n`th choice of a network for the lab `id`: a /24 in 198.18.0.0/15, the block for benchmarks (RFC 2544).
pub fn subnet(id: &str, n: u32) -> Ipv4Network {
    const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);
    let start = u32::from_str_radix(id, 16).unwrap_or(0);
    // The last of the 512 networks are free for other uses.
    let first = FIRST + ((start.wrapping_add(n) % SUBNETS) << 8);
    Ipv4Network::new(first.into(), 24).expect("24 is a prefix")
}

/// Runs a job.
///
/// # Errors
/// If there is no engine or no image, a container does not join or dies, or the user interrupts.
pub(crate) fn run(
    job: &Job<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    let docker = Docker::find()?;
    let image = image();
    docker.require_image(&image)?;
    docker.remove_leftovers()?;
    let hosting = Hosting::elsewhere(&job.lab.fabric.wiring, job.run.placement);
    let (token, id) = secrets()?;
    let used = docker.subnets()?;
    let mut subnets = (0..SUBNETS).map(|n| subnet(&id, n));
    let subnet = subnets.find(|subnet| !used.iter().any(|used| used.overlaps(*subnet)));
    let subnet = subnet.ok_or_else(|| {
        LaunchError::host(format!("all {SUBNETS} networks in 198.18.0.0/15 are in use"))
    })?;
    let lab = ContainerLab {
        scenario: job.name,
        labels: Labels { id: &id, owner: &engine::owner() },
        token: token.text(),
        image: &image,
        subnet,
        realtime: job.run.realtime,
        launcher: &Launcher::Outside,
        monitoring: None,
    };
    let path = job.scratch.join("compose.yaml");
    let text = file::render(&lab, Engine::Compose, &job.lab.fabric.wiring, &hosting);
    monitoring::secret(&path, &text).or_host(format!("cannot write {}", path.display()))?;
    let mut project = docker.create(&id, &path)?;
    let outcome = block_on(async {
        let address = (gateway(subnet), PORT);
        let listener = TcpListener::bind(address)
            .await
            .or_host(format!("cannot listen at {}:{PORT}, the lab's gateway", address.0))?;
        project.start()?;
        joined::run(job, hosting, listener, &token, progress).await
    });
    let outcome = outcome.map_err(|error| match error.kind {
        FailureKind::Died => error.with_appendix(&project.last_log_lines()),
        _ => error,
    });
    project.down()?;
    outcome
}
