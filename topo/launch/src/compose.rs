//! The substrate `compose`: daemons in containers of this host, which join a launcher outside them.
//!
//! ```text
//!   sweep what dead launchers left ─▶ create network and containers ─▶ listen at the network's
//!   gateway ─▶ start containers ─▶ all join ─▶ the run ─▶ down, whatever happened
//! ```
//!
//! Every object carries the lab's name and its launcher's: start of the machine, process number and when
//! that began. A launcher removes what it made; what one left that was killed goes with the next.

pub mod board;
mod engine;
pub mod file;

use super::placement::Hosting;
use super::{Job, LaunchError, Outcome, Progress, joined};
use daemon::token::Token;
use engine::Docker;
use file::{Engine, Lab, Launcher, PORT, gateway};
use std::net::Ipv4Addr;
use tokio::net::TcpListener;

/// The variable of the environment that names the image.
pub const IMAGE_VARIABLE: &str = "PAUSEBED_IMAGE";
/// Networks that are tried before it is given up: others may have labs too.
const SUBNETS_TRIED: u32 = 20;

/// The image of the daemons: the one that was asked for, else that of this version.
pub fn image() -> String {
    let own = || format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    std::env::var(IMAGE_VARIABLE).ok().filter(|name| !name.is_empty()).unwrap_or_else(own)
}

/// A secret, and a name of eight letters for a lab.
///
/// # Errors
/// If the system gives no random octets.
pub fn secrets() -> Result<(Token, String), LaunchError> {
    let make =
        || Token::make().map_err(|error| LaunchError::Host(format!("no random octets: {error}")));
    let id = make()?.text()[..8].to_owned();
    Ok((make()?, id))
}

/// The `n`th network that a lab of this name tries: a /24 in 198.18.0.0/15, the block for tests.
pub fn subnet(id: &str, n: u32) -> Ipv4Addr {
    const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);
    let start = u32::from_str_radix(id, 16).unwrap_or(0);
    // The last of the 512 are left to those who start an engine of their own.
    Ipv4Addr::from(FIRST + ((start.wrapping_add(n) % 500) << 8))
}

/// Runs a job.
///
/// # Errors
/// If there is no engine or no image, a container does not join or dies, or somebody interrupts.
pub fn run(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError> {
    let docker = Docker::find()?;
    let image = image();
    docker.require_image(&image)?;
    docker.sweep()?;
    let hosting = Hosting::elsewhere(&job.lab.fabric.wiring, job.placement);
    let (token, id) = secrets()?;
    let owner = engine::owner();
    let mut project = None;
    for n in 0..SUBNETS_TRIED {
        let lab = Lab {
            scenario: job.name,
            id: &id,
            token: token.text(),
            image: &image,
            owner: &owner,
            subnet: subnet(&id, n),
            realtime: job.realtime,
            launcher: &Launcher::Outside,
            board: None,
        };
        let text = file::render(&lab, Engine::Compose, &job.lab.fabric.wiring, &hosting);
        let path = job.scratch.join("compose.yaml");
        std::fs::write(&path, text)
            .map_err(|error| LaunchError::Host(format!("{}: {error}", path.display())))?;
        if let Some(made) = docker.create(&id, &path)? {
            project = Some((made, lab.subnet));
            break;
        }
    }
    let Some((mut project, subnet)) = project else {
        let reason = format!("{SUBNETS_TRIED} networks in 198.18.0.0/15 are all taken");
        return Err(LaunchError::Host(reason));
    };
    let outcome = converse(job, hosting, &project, subnet, &token, progress);
    let outcome = outcome.map_err(|error| match error {
        LaunchError::Died(reason) => LaunchError::Died(format!("{reason}{}", project.last_words())),
        other => other,
    });
    project.down()?;
    outcome
}

fn converse(
    job: &Job<'_>,
    hosting: Hosting,
    project: &engine::Project<'_>,
    subnet: Ipv4Addr,
    token: &Token,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    let host = |error: String| LaunchError::Host(error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| host(error.to_string()))?;
    runtime.block_on(async {
        let address = (gateway(subnet), PORT);
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| {
            host(format!("cannot listen at {}:{PORT}, the lab's gateway: {error}", address.0))
        })?;
        project.start()?;
        joined::run(job, hosting, listener, token, progress).await
    })
}
