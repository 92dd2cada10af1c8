//! The substrate `remote`: daemons that somebody else starts, in containers, on other machines, by
//! hand; each joins this launcher by TCP.
//!
//! ```text
//!   PAUSEBED_TOKEN=… pausebed run FILE --backend remote          (listens at PAUSEBED_LISTEN)
//!   PAUSEBED_TOKEN=… nicd    --join HOST:4700 --process 0
//!   PAUSEBED_TOKEN=… switchd --join HOST:4700 --process 1
//! ```

use super::placement::Hosting;
use super::{Job, LaunchError, Outcome, Progress, joined};
use daemon::join::TOKEN_VARIABLE;
use daemon::token::Token;
use emulation::wiring::NodeKind;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The variable of the environment that says where to listen.
pub const LISTEN_VARIABLE: &str = "PAUSEBED_LISTEN";
/// Where a launcher listens that is told nothing else.
pub const LISTEN: &str = "127.0.0.1:4700";

/// Runs a job.
///
/// # Errors
/// If there is no token, the address cannot be had, a daemon does not come or dies, or somebody
/// interrupts.
pub fn run(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError> {
    let host = |reason: String| LaunchError::Host(reason);
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    if token.is_empty() {
        let reason = "set it to a secret that daemons have too, as any of 16 random octets in hex";
        return Err(host(format!("{TOKEN_VARIABLE} is not set: {reason}")));
    }
    let address = std::env::var(LISTEN_VARIABLE).unwrap_or_else(|_| LISTEN.to_owned());
    let address: SocketAddr = address.parse().map_err(|_| {
        host(format!("{LISTEN_VARIABLE}: {address:?} is not an address with a port"))
    })?;
    let hosting = Hosting::elsewhere(&job.lab.fabric.wiring, job.placement);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| host(error.to_string()))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.map_err(|error| host(format!("cannot listen at {address}: {error}")))?;
        let address = listener.local_addr().map_err(|error| host(error.to_string()))?;
        eprintln!("waiting at {address} for {}", parts(&hosting));
        joined::run(job, hosting, listener, &Token::told(&token), progress).await
    })
}

/// Which processes are to join, in words.
fn parts(hosting: &Hosting) -> String {
    let numbers = |kind| {
        let own = hosting.kinds.iter().enumerate().filter(|(_, own)| **own == kind);
        let numbers: Vec<String> = own.map(|(process, _)| process.to_string()).collect();
        match numbers.as_slice() {
            [] => "none".to_owned(),
            [only] => only.clone(),
            [first, .., last] => format!("{first} to {last}"),
        }
    };
    format!("nicd {} and switchd {}", numbers(NodeKind::Nic), numbers(NodeKind::Switch))
}
