//! Runs without an end: daemons that go on until somebody wants them to stop, and may be administered
//! meanwhile.

use super::{Cabling, Session, Special};
use crate::placement::Hosting;
use crate::{Job, LaunchError};
use daemon::token::Token;
use daemon::{AdminConfig, TcpConfig};
use emulation::wiring::NodeKind;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A daemon of a run that has begun.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its process id.
    pub pid: u32,
    /// What it hosts.
    pub kind: NodeKind,
    /// Its nodes.
    pub nodes: Vec<usize>,
    /// Where it may be administered.
    pub socket: PathBuf,
    /// Where by TCP, if it may.
    pub address: Option<SocketAddr>,
}

/// How daemons may be administered: at sockets in the job's folder, and otherwise.
#[derive(Clone, Debug, Default)]
pub struct Administered {
    /// The token for TCP, which is shut without one.
    pub token: Option<Token>,
}

/// How process `process` of `job` may be administered.
pub(super) fn admin(job: &Job<'_>, process: usize, how: &Administered) -> AdminConfig {
    let tcp = how.token.clone().map(|token| TcpConfig { port: 0, name: None, token });
    AdminConfig { socket: Some(socket(job, process)), tcp }
}

fn socket(job: &Job<'_>, process: usize) -> PathBuf {
    job.scratch.join(format!("process-{process}.sock"))
}

/// Starts the daemons of `job`, says who they are, and goes on until somebody wants the run to end.
///
/// Must be called on the main thread, as for every run with daemons.
///
/// # Errors
/// If a daemon dies or refuses its configuration, or `begun` has one.
pub fn keep(
    job: &Job<'_>,
    cabling: Cabling,
    administered: Administered,
    begun: impl FnOnce(Vec<Kept>) -> Result<(), LaunchError>,
) -> Result<(), LaunchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LaunchError::Host(error.to_string()))?;
    runtime.block_on(async {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let hosting = Hosting::new(&job.lab.fabric.wiring, job.placement, cores);
        let special = Special { administered: Some(administered), ..Special::default() };
        let mut session = Session::open(job, hosting, cabling, &special)?;
        let ended = session.stay(job, begun).await;
        for daemon in &mut session.daemons {
            daemon.end().await;
        }
        match ended {
            Err(LaunchError::Interrupted) => Ok(()),
            ended => ended,
        }
    })
}

impl Session {
    async fn stay(
        &mut self,
        job: &Job<'_>,
        begun: impl FnOnce(Vec<Kept>) -> Result<(), LaunchError>,
    ) -> Result<(), LaunchError> {
        let hellos = self.hellos().await?;
        let peers = hellos.iter().map(|hello| hello.address.clone()).collect();
        let begin = self.begin(job, peers).await?;
        let daemons = hellos.iter().enumerate().map(|(process, hello)| Kept {
            pid: hello.pid,
            kind: self.hosting.kinds[process],
            nodes: self.hosting.nodes(process).collect(),
            socket: socket(job, process),
            address: hello.admin,
        });
        let daemons = daemons.collect();
        // Whoever hears of the daemons shall find a run that has begun.
        while begin.clock.now() == proto::units::Instant::ZERO {
            self.next().await?;
        }
        begun(daemons)?;
        loop {
            self.next().await?;
        }
    }
}
