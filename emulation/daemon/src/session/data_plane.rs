//! The data plane of a daemon: a worker that follows the wall clock, or one with exact pace.

use super::{Hosted, Start};
use crate::config::DaemonConfig;
use crate::error::{Context, DaemonError};
use crate::{privileges, sockets};
use emulation::cable::exchange::{Exchange, Session};
use emulation::driver::{Assignment, FedFrame, Report, Supervisor, Worker, impairers};
use emulation::exact::{self, ExactAssignment, ExactWorker, Mesh};
use emulation::timer::prepare_thread;

/// A worker that has not begun.
pub(super) enum DataPlane {
    Wall { assignment: Box<Assignment>, realtime: bool, fed: Vec<FedFrame> },
    Exact { assignment: Box<ExactAssignment>, fed: Vec<FedFrame> },
}

impl DataPlane {
    /// Connects the sockets of `hosted` to its peers.
    pub fn new(hosted: Hosted, start: &Start) -> Result<DataPlane, DaemonError> {
        let Hosted { config, devices, sockets, recorder, fed, .. } = hosted;
        let DaemonConfig { process, processes, bare, datagram_max, realtime, .. } = config;
        let lines = config.lines()?;
        let peers = sockets::peers(&config, &start.peers)?;
        let impairers = impairers(&config.wiring, config.seed);
        let (epoch, clock) = (start.epoch, start.clock.clone());
        let Some(secret) = start.secret.filter(|_| config.exact) else {
            if config.exact {
                return Err(DaemonError::Fault(
                    "exact pace needs the secret of the run".to_owned(),
                ));
            }
            let session = Session { epoch, peers, datagram_max, bare, clock: clock.clone() };
            let exchange = Exchange::new(sockets, session, &lines).context("no cables")?;
            let plan = config.plan;
            let assignment = Assignment {
                process,
                processes,
                clock,
                begin: start.begin,
                plan,
                devices,
                lines,
                impairers,
                exchange,
                recorder,
            };
            return Ok(DataPlane::Wall { assignment: Box::new(assignment), realtime, fed });
        };
        let stop = config.plan.stop;
        let session = exact::Session { process, epoch, secret, peers, datagram_max, stop };
        let mesh =
            Mesh::new(sockets, bare, session, &lines, &config.wiring).context("no cables")?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (plan, spins) = (config.plan, processes <= cores);
        let assignment =
            ExactAssignment { process, spins, plan, devices, lines, impairers, mesh, recorder };
        Ok(DataPlane::Exact { assignment: Box::new(assignment), fed })
    }

    /// Runs the worker on this thread. `report` gets its report; with exact pace the worker then still answers its
    /// neighbours.
    pub fn run(
        self,
        supervisor: &impl Supervisor,
        report: impl FnOnce(Report),
    ) -> Result<(), DaemonError> {
        match self {
            DataPlane::Wall { assignment, realtime, fed } => {
                let priority = prepare_thread(realtime);
                privileges::drop_all();
                let mut worker = Worker::new(*assignment, priority);
                fed.into_iter().for_each(|fed| worker.feed(fed));
                report(worker.run(supervisor));
            }
            DataPlane::Exact { assignment, fed } => {
                privileges::drop_all();
                let mut worker = ExactWorker::new(*assignment);
                fed.into_iter().for_each(|fed| worker.feed(fed));
                let ended = worker.run(supervisor);
                let (result, lingering) =
                    ended.map_err(|fault| DaemonError::Fault(fault.to_string()))?;
                report(result);
                lingering.serve(supervisor);
            }
        }
        Ok(())
    }
}
