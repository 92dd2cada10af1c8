//! Runs without an end: the daemons of a lab run until the user stops them, and can be administered meanwhile.

use super::configuration::{admin_socket, clients_socket};
use super::session::{Begin, Session};
use super::{Cabling, Setup, hosting_here};
use crate::placement::Hosting;
use crate::{FailureKind, Job, LaunchError, block_on};
use daemon::protocol::Hello;
use daemon::token::Token;
use daemon::{AdminConfig, TcpConfig};
use emulation::clock::Stopwatch;
use emulation::driver::Report;
use emulation::wiring::NodeKind;
use proto::units::Instant;
use scenario::run::Pace;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A daemon that has been silent for so long hangs, in seconds: longer than a host is busy or suspended for a moment.
const HANGING_S: f64 = 10.0;
/// A daemon that has been replaced so often within so many seconds is given up.
const DEATHS_MAX: usize = 5;
const DEATHS_WITHIN_S: f64 = 60.0;

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
    /// How often a process that ended has been replaced by another.
    #[serde(default)]
    pub restarts: u32,
    /// Its processes ended too often, and there is none any more.
    #[serde(default)]
    pub is_given_up: bool,
    /// The socket of its administration.
    pub socket: PathBuf,
    /// The TCP address of its administration, with the lab's token, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// What the names of its sockets for programs that manage the fabric begin with, if they are to manage it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<String>,
}

impl DaemonRecord {
    fn new(job: &Job<'_>, hosting: &Hosting, process: usize, hello: &Hello) -> DaemonRecord {
        let name = |node: usize| job.lab.fabric.wiring.nodes[node].name.clone();
        DaemonRecord {
            pid: hello.pid,
            kind: hosting.kinds[process],
            nodes: hosting.nodes(process).map(name).collect(),
            is_silent: false,
            restarts: 0,
            is_given_up: false,
            socket: admin_socket(job, process),
            address: hello.admin,
            clients: clients_socket(job, process),
        }
    }
}

/// What happens to the daemons of a lab.
#[derive(Debug)]
pub(crate) enum LabEvent {
    /// They run.
    Begun(Vec<DaemonRecord>),
    /// The process with this number has ended, for this reason. Another has taken its place, or none.
    Ended(usize, String, Option<DaemonRecord>),
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
/// If a daemon dies on whose state others rely, one refuses its configuration, or `notify` fails.
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
    let admin = |process: usize| {
        let tcp = token.clone().map(|token| TcpConfig { port: 0, name: None, token });
        Some(AdminConfig { socket: Some(admin_socket(job, process)), tcp })
    };
    let ended = block_on(async {
        Session::open(job, Setup::new(hosting_here(job), cabling), admin)?
            .use_and_end(async |session| {
                let mut begin = session.begin(job, None).await?;
                let hellos = begin.hellos.iter().enumerate();
                let daemons = hellos
                    .map(|(process, hello)| {
                        DaemonRecord::new(job, &session.hosting, process, hello)
                    })
                    .collect();
                // A client that reads of these daemons must find a run that has begun.
                while begin.clock.now() == Instant::ZERO {
                    session.next().await?;
                }
                notify(LabEvent::Begun(daemons))?;
                let watched = watch(session, job, &mut begin, &mut notify).await;
                match watched {
                    Err(error) if error.kind == FailureKind::Interrupted => {}
                    watched => watched?,
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

/// Replaces daemons that end, until the user stops the lab or something fails.
async fn watch(
    session: &mut Session,
    job: &Job<'_>,
    begin: &mut Begin,
    notify: &mut impl FnMut(LabEvent) -> Result<(), LaunchError>,
) -> Result<(), LaunchError> {
    let mut deaths: Vec<(usize, Stopwatch)> = Vec::new();
    loop {
        session.next().await?;
        session.note_hanging(HANGING_S);
        while let Some((process, how)) = session.fallen() {
            deaths.retain(|(_, since)| since.seconds() < DEATHS_WITHIN_S);
            deaths.push((process, Stopwatch::start()));
            let is_too_often =
                deaths.iter().filter(|(other, _)| *other == process).count() >= DEATHS_MAX;
            let hello = match is_too_often {
                true => session.give_up(process).await.map(|()| None),
                false => session.replace(job, process, begin).await,
            };
            let new = hello?.map(|hello| DaemonRecord::new(job, &session.hosting, process, &hello));
            if is_too_often || new.is_some() {
                notify(LabEvent::Ended(process, how, new))?;
            }
        }
        notify(LabEvent::Turn { silent: session.silent() })?;
    }
}
