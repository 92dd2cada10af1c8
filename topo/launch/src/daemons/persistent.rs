//! Runs without an end: the daemons of a lab run until the user stops them, and can be administered meanwhile.

use super::configuration::clients_socket;
use super::session::Session;
use super::{Cabling, Setup, hosting_here};
use crate::{FailureKind, Job, LaunchError, block_on};
use daemon::token::Token;
use daemon::{AdminConfig, TcpConfig};
use emulation::driver::Report;
use emulation::wiring::NodeKind;
use proto::units::Instant;
use scenario::run::Pace;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A daemon of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRecord {
    /// Its process id.
    pub pid: u32,
    /// The kind of its nodes.
    pub kind: NodeKind,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// It has sent no heartbeat for some seconds: its worker hangs, or the host is overloaded.
    #[serde(default)]
    pub is_silent: bool,
    /// The socket of its administration.
    pub socket: PathBuf,
    /// The TCP address of its administration, with the lab's token, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// What the names of its sockets for programs that manage the fabric begin with, if they are to manage it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<String>,
}

/// What happens to the daemons of a lab.
#[derive(Debug)]
pub(crate) enum LabEvent {
    /// They run.
    Begun(Vec<DaemonRecord>),
    /// A short while has passed.
    Turn {
        /// The processes that have said nothing for long.
        silent: Vec<usize>,
    },
}

/// Starts the daemons of `job`, and runs until the user stops the lab. Then all daemons stop, and the result is their
/// reports; none if one did not report in time. Calls `notify` when they run, and several times
/// a second from then on. The daemons can be administered at sockets in the job's folder, and with `token` by TCP.
///
/// Must be called on the main thread, as every run with daemons.
///
/// # Errors
/// If a daemon dies or refuses its configuration, or `notify` fails.
pub(crate) fn run_until_stopped(
    job: &Job<'_>,
    cabling: Cabling,
    token: Option<Token>,
    mut notify: impl FnMut(LabEvent) -> Result<(), LaunchError>,
) -> Result<Option<Vec<Report>>, LaunchError> {
    if job.run.pace == Pace::Exact {
        let reason = "a lab that stays follows the wall clock: leave out pace \"exact\", or use pausebed run";
        return Err(LaunchError::config(reason));
    }
    let socket = |process: usize| job.scratch.join(format!("process-{process}.sock"));
    let admin = |process: usize| {
        let tcp = token.clone().map(|token| TcpConfig { port: 0, name: None, token });
        Some(AdminConfig { socket: Some(socket(process)), tcp })
    };
    let ended = block_on(async {
        Session::open(job, Setup::new(hosting_here(job), cabling), admin)?
            .use_and_end(async |session| {
                let begin = session.begin(job, None).await?;
                let name = |node: usize| job.lab.fabric.wiring.nodes[node].name.clone();
                let daemons =
                    begin.hellos.iter().enumerate().map(|(process, hello)| DaemonRecord {
                        pid: hello.pid,
                        kind: session.hosting.kinds[process],
                        nodes: session.hosting.nodes(process).map(name).collect(),
                        is_silent: false,
                        socket: socket(process),
                        address: hello.admin,
                        clients: clients_socket(job, process),
                    });
                let daemons = daemons.collect();
                // A client that reads of these daemons must find a run that has begun.
                while begin.clock.now() == Instant::ZERO {
                    session.next().await?;
                }
                notify(LabEvent::Begun(daemons))?;
                loop {
                    match session.next().await {
                        Err(error) if error.kind == FailureKind::Interrupted => break,
                        handled => handled?,
                    }
                    notify(LabEvent::Turn { silent: session.silent() })?;
                }
                Ok(session.stop().await)
            })
            .await
    });
    match ended {
        Err(error) if error.kind == FailureKind::Interrupted => Ok(None),
        ended => ended,
    }
}
