//! Daemons of a lab that end are replaced.
//!
//! ```text
//!   ended ─▶ Gone to all others ─▶ all have learned it ─▶ hello of the new one ─▶ Replaced to all others ─▶ start
//! ```
//!
//! Links to the process go down and come up, as with devices that lose power. Adapters share the state of queue pairs, so
//! all others begin anew with those of the process. Where others rely on more, the end of a daemon is the end of the lab:
//! a host beside an adapter, a trace whose messages wait for each other, and frames held for resequencing.

use super::{Begin, HELLO_WITHIN_S, LEAD_NS, Received, Session};
use crate::daemons::configuration::admin_socket;
use crate::error::OrHost;
use crate::placement::Hosting;
use crate::processes::{Daemon, DaemonEvent};
use crate::{Job, LaunchError};
use daemon::protocol::{Hello, ToDaemon};
use emulation::clock::{Stopwatch, monotonic_ns};
use nicd::config::{Target, TrafficConfig};
use proto::ids::Lid;
use std::path::PathBuf;
use tokio::sync::mpsc::UnboundedSender;

/// Time for all daemons to learn that one has ended, in seconds.
const PARTS_WITHIN_S: f64 = 5.0;

/// What starts a daemon again, and which have ended.
pub(super) struct Restarting {
    /// The configurations, by process; none if the end of the process is the end of the run.
    pub files: Vec<Option<PathBuf>>,
    pub environment: Vec<(String, String)>,
    pub sender: UnboundedSender<(usize, DaemonEvent)>,
    /// The run has begun: what a daemon refuses before, another would refuse, too.
    pub has_begun: bool,
    /// Processes that have ended, and how.
    pub fallen: Vec<(usize, String)>,
}

/// The adapters of a process, by their indexes.
fn adapters<'a>(
    job: &'a Job<'_>,
    hosting: &'a Hosting,
    process: usize,
) -> impl Iterator<Item = usize> + 'a {
    hosting.nodes(process).filter(|node| *node < job.lab.nics.len())
}

/// Whether another process can take the place of this one.
pub(super) fn is_replaceable(job: &Job<'_>, hosting: &Hosting, process: usize) -> bool {
    adapters(job, hosting, process).all(|node| {
        let nic = &job.lab.nics[node];
        let is_free = |item: &TrafficConfig| !matches!(item.to, Target::Script(_));
        let has_host =
            job.lab.fabric.wiring.attached.iter().any(|attached| attached.at.node == node);
        !has_host && nic.wire.resequence().is_none() && nic.traffic.iter().all(is_free)
    })
}

impl Session {
    /// Whether the end of this process is not the end of the run.
    pub(super) fn replaces(&self, process: usize) -> bool {
        let begun = self.restarting.as_ref().filter(|restarting| restarting.has_begun);
        begun.is_some_and(|restarting| restarting.files[process].is_some())
    }

    /// Keeps the first reason for which a process is to be replaced.
    pub(super) fn note_fallen(&mut self, process: usize, how: String) {
        let Some(restarting) = &mut self.restarting else { return };
        let is_known = restarting.fallen.iter().any(|(other, _)| *other == process);
        if !is_known && !self.received[process].is_given_up {
            restarting.fallen.push((process, how));
        }
    }

    /// Notes that processes which have been silent for `silence_s` seconds are to be replaced.
    pub(crate) fn note_hanging(&mut self, silence_s: f64) {
        for process in self.silent() {
            if self.replaces(process) && self.received[process].last.seconds() > silence_s {
                let name = &self.daemons[process].name;
                self.note_fallen(process, format!("{name} has been silent for {silence_s:.0} s"));
            }
        }
    }

    /// A process that has ended and is to be replaced or given up, and how it ended.
    pub(crate) fn fallen(&self) -> Option<(usize, String)> {
        self.restarting.as_ref()?.fallen.first().cloned()
    }

    /// Ends the process for good, and tells all others.
    ///
    /// # Errors
    /// If another daemon does not learn of it in time, or fails.
    pub(crate) async fn give_up(&mut self, process: usize) -> Result<(), LaunchError> {
        self.part_from(process).await?;
        self.received[process].is_given_up = true;
        self.settle(process);
        Ok(())
    }

    /// Starts another daemon in the place of one that has ended. It begins at the present of the fabric. The result is none
    /// if it ends before its hello; then it has fallen again.
    ///
    /// # Errors
    /// If another daemon fails.
    pub(crate) async fn replace(
        &mut self,
        job: &Job<'_>,
        process: usize,
        begin: &mut Begin,
    ) -> Result<Option<Hello>, LaunchError> {
        self.part_from(process).await?;
        // The file of a process that was killed stays.
        let _ = std::fs::remove_file(admin_socket(job, process));
        let restarting = self.restarting.as_ref().expect("the process has a successor");
        let Restarting { files, environment, sender, .. } = restarting;
        let file = files[process].as_ref().expect("the process has a successor");
        let kind = self.hosting.kinds[process];
        let daemon = Daemon::start(kind, process, file, environment, sender.clone());
        self.daemons[process] = daemon.or_host(format!("cannot start process {process}"))?;
        self.received[process] = Received::nothing();
        self.settle(process);
        let Some(hello) = self.hello_of(process).await? else { return Ok(None) };
        begin.peers[process].clone_from(&hello.address);
        begin.hellos[process] = hello.clone();
        let lids = adapters(job, &self.hosting, process).map(|node| job.lab.nics[node].lid);
        let adapters: Vec<Lid> = lids.collect();
        let address = hello.address.clone();
        self.announce(process, &ToDaemon::Replaced { process, address, adapters }).await;
        let start = ToDaemon::Start {
            epoch: begin.epoch,
            origin_ns: begin.clock.origin_ns(),
            dilation: begin.clock.piece(begin.clock.now()).dilation,
            peers: begin.peers.clone(),
            begin: begin.clock.at_wall_ns(monotonic_ns() + LEAD_NS),
            secret: None,
        };
        // One that has ended already is noticed where its messages are read.
        let _ = self.daemons[process].send(&start).await;
        self.received[process].last = Stopwatch::start();
        Ok(Some(hello))
    }

    /// Ends the process, and waits until all others have learned it.
    async fn part_from(&mut self, process: usize) -> Result<(), LaunchError> {
        self.daemons[process].end().await;
        self.announce(process, &ToDaemon::Gone { process }).await;
        let stopwatch = Stopwatch::start();
        let has_learned = |from: &Received| {
            let learned = from.beat.as_ref().map_or(0, |beat| beat.peers_changed);
            from.is_given_up || from.has_ended || learned >= from.peers_changed
        };
        // The last event of the process must not count as one of the process that follows.
        while !self.received[process].has_ended || !self.received.iter().all(has_learned) {
            self.next().await?;
            if stopwatch.seconds() > PARTS_WITHIN_S {
                let name = &self.daemons[process].name;
                return Err(LaunchError::died(format!(
                    "not all daemons have learned that {name} has ended"
                )));
            }
        }
        Ok(())
    }

    /// The process is no longer to be replaced.
    fn settle(&mut self, process: usize) {
        if let Some(restarting) = &mut self.restarting {
            restarting.fallen.retain(|(other, _)| *other != process);
        }
    }

    /// Sends a message about `process` to all others that run.
    async fn announce(&mut self, process: usize, message: &ToDaemon) {
        let others = self.daemons.iter_mut().zip(&mut self.received).enumerate();
        for (_, (daemon, from)) in others.filter(|(other, _)| *other != process) {
            if !from.has_ended {
                from.peers_changed += 1;
                // One that has ended is noticed where its messages are read.
                let _ = daemon.send(message).await;
            }
        }
    }

    async fn hello_of(&mut self, process: usize) -> Result<Option<Hello>, LaunchError> {
        let stopwatch = Stopwatch::start();
        while self.received[process].hello.is_none() && !self.received[process].has_ended {
            self.next().await?;
            if stopwatch.seconds() > HELLO_WITHIN_S {
                let how = format!("{} sent no hello", self.daemons[process].name);
                self.note_fallen(process, how);
                break;
            }
        }
        Ok(self.received[process].hello.take())
    }
}
