//! The substrate `remote`: daemons that others start, in containers, on other machines or by hand, join this
//! launcher by TCP.
//!
//! ```text
//!   PAUSEBED_TOKEN=… pausebed run FILE --backend remote          (listens at PAUSEBED_LISTEN)
//!   PAUSEBED_TOKEN=… nicd    --join HOST:4700 --process 0
//!   PAUSEBED_TOKEN=… switchd --join HOST:4700 --process 1
//! ```

use super::placement::Hosting;
use super::{Job, LaunchError, Outcome, Progress, block_on, joined};
use crate::error::OrHost;
use daemon::join::TOKEN_VARIABLE;
use daemon::token::Token;
use emulation::wiring::NodeKind;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The environment variable with the address to listen at.
const LISTEN_VARIABLE: &str = "PAUSEBED_LISTEN";
/// The default address to listen at.
const LISTEN: &str = "127.0.0.1:4700";

/// Runs a job.
///
/// # Errors
/// If there is no token, the address cannot be used, a daemon does not join or dies, or the user interrupts.
pub(crate) fn run(
    job: &Job<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    if token.is_empty() {
        let hint =
            "set it to the same secret as for the daemons, for example 16 random octets in hex";
        return Err(LaunchError::host(format!("{TOKEN_VARIABLE} is not set: {hint}")));
    }
    let address = std::env::var(LISTEN_VARIABLE).unwrap_or_else(|_| LISTEN.to_owned());
    let wrong = format!("{LISTEN_VARIABLE}: {address:?} is not an address with a port");
    let address = address.parse::<SocketAddr>().or_host(wrong)?;
    let hosting = Hosting::elsewhere(&job.lab.fabric.wiring, job.run.placement);
    let cannot = || format!("cannot listen at {address}");
    block_on(async {
        let listener = TcpListener::bind(address).await.or_host(cannot())?;
        let address = listener.local_addr().or_host(cannot())?;
        eprintln!("waiting at {address} for {}", parts(&hosting));
        joined::run(job, hosting, listener, &Token::new(&token), progress).await
    })
}

/// The processes that must join, as text.
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
