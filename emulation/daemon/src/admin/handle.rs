//! The handle between HTTP requests and the worker: orders, and snapshots that concurrent requests share.

use super::capture_file;
use super::view::{CaptureStatus, Counters, Outputs, Status};
use crate::clients::ClientTally;
use crate::config::DaemonConfig;
use crate::error::with_sources;
use crate::orders::OrderSender;
use axum::http::StatusCode;
use capture::{Capture, CapturePlan, CapturedPort, Tally, WhenFull};
use emulation::cable::impairment::{Impairer, ManualImpairment};
use emulation::clock::{Clock, Stopwatch, monotonic_ns};
use emulation::driver::account::Account;
use emulation::driver::orders::{DeviceSnapshot, ImpairmentChange, Order, Reply};
use emulation::frame_tap::{CaptureStatistics, FrameTap};
use emulation::timer::{Priority, permitted_priority};
use emulation::wiring::{Action, End, Impairment};
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::units::{BitRate, Bytes, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use tokio::sync::{Mutex, MutexGuard, oneshot};

/// Orders that may wait for the worker.
pub(crate) const ORDERS_MAX: usize = 16;
/// How far ahead the instant of an account may be, in wall time: below the lifetime of a connection.
const ACCOUNT_AHEAD_MAX_NS: u64 = 4_000_000_000;
/// How long a snapshot is reused, in seconds: the worker reads its devices ten times a second at most.
const SNAPSHOT_SERVES_S: f64 = 0.1;

/// The properties of a daemon that do not change while it runs.
#[derive(Debug)]
pub(crate) struct ProcessInfo {
    /// What the launcher configured.
    pub config: DaemonConfig,
    /// This process's nodes, in the order of the worker's devices.
    pub nodes: Vec<usize>,
    /// Fabric time.
    pub clock: Clock,
    /// How the worker is scheduled.
    pub priority: Priority,
    /// The counts of the server for programs beside devices, if there is one.
    pub clients: Option<Arc<ClientTally>>,
}

impl ProcessInfo {
    /// The properties of the process with this configuration.
    pub fn new(
        config: DaemonConfig,
        clock: Clock,
        clients: Option<Arc<ClientTally>>,
    ) -> ProcessInfo {
        let (nodes, priority) = (config.own_nodes().collect(), permitted_priority(config.realtime));
        ProcessInfo { config, nodes, clock, priority, clients }
    }

    /// Wall time over fabric time: that of the start, since only runs without administration change it.
    pub fn dilation(&self) -> u64 {
        self.clock.pieces()[0].dilation.get()
    }
}

/// A request to capture frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// A new file or a pipe in the folder of the daemon's socket.
    pub file: PathBuf,
    /// Names of the ports, and the rate that the capture states for each.
    pub ports: BTreeMap<String, BitRate>,
    /// Octets kept of each frame; all if `None`.
    pub snaplen: Option<Bytes>,
}

/// Why a request has no answer: the status of the response, and a sentence.
#[derive(Debug)]
pub(crate) struct Refusal(pub StatusCode, pub String);

impl Refusal {
    /// The request is not valid for this process.
    pub fn invalid(reason: impl Into<String>) -> Refusal {
        Refusal(StatusCode::UNPROCESSABLE_ENTITY, reason.into())
    }

    /// The worker is overloaded or has ended.
    fn busy<E>(_: E) -> Refusal {
        let reason = "the worker does not answer: the run has not begun, is over, or is late";
        Refusal(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
    }
}

/// The last snapshot, and the counters to subtract from it.
#[derive(Debug, Default)]
struct SnapshotCache {
    /// When the snapshot was taken, and how deep it is; none without a snapshot.
    taken: Option<(Stopwatch, Depth)>,
    snapshot: Box<DeviceSnapshot>,
    baseline: Option<Counters>,
}

/// Administers one worker; HTTP requests share it.
#[derive(Debug)]
pub(crate) struct AdminHandle {
    /// The properties that do not change.
    pub info: ProcessInfo,
    /// Device and port by name.
    ends: BTreeMap<String, (usize, PortNumber)>,
    /// Name, device and port of the ports with a cable, in the order of the wiring.
    outputs: Vec<(String, usize, PortNumber)>,
    orders_out: OrderSender,
    /// A lock, so that concurrent requests take one snapshot; held while the worker answers.
    cache: Mutex<SnapshotCache>,
    /// The file and the totals of the running capture. A lock, because requests of several threads begin and end captures.
    capturing: std::sync::Mutex<Option<(PathBuf, Arc<Tally>)>>,
}

impl AdminHandle {
    /// A handle for the worker that receives from `orders_out`.
    pub fn new(info: ProcessInfo, orders_out: OrderSender) -> AdminHandle {
        let (ends, wiring) = (info.config.own_ends(), &info.config.wiring);
        let cabled = wiring.links.iter().flat_map(|link| [link.a, link.b]);
        let names = cabled.map(|end| wiring.end_name(end));
        let output = |name: String| ends.get(&name).map(|(device, port)| (name, *device, *port));
        let outputs = names.filter_map(output).collect();
        AdminHandle {
            info,
            ends,
            outputs,
            orders_out,
            cache: Mutex::default(),
            capturing: Default::default(),
        }
    }

    /// The worker's status.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn status(&self) -> Result<Status, Refusal> {
        Ok(self.status_of(&self.read(Depth::Ports).await?.snapshot))
    }

    fn status_of(&self, snapshot: &DeviceSnapshot) -> Status {
        let capturing = self.capturing.lock().unwrap_or_else(PoisonError::into_inner);
        let capture = capturing.as_ref().map(|(file, tally)| CaptureStatus {
            file: file.clone(),
            seen: tally.seen(),
            dropped: tally.dropped(),
            error: tally.failure().map(str::to_owned),
        });
        Status::of(&self.info, snapshot, capture)
    }

    /// The totals of all outputs since the start of the run.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn outputs(&self) -> Result<Outputs, Refusal> {
        Ok(Outputs::of(&self.outputs, &self.read(Depth::Ports).await?.snapshot))
    }

    /// All counters since they were last cleared, or since the start of the run.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn counters(&self) -> Result<Counters, Refusal> {
        let cache = self.read(Depth::All).await?;
        let counters = Counters::of(&self.info, &cache.snapshot);
        Ok(cache.baseline.iter().fold(counters, Counters::since))
    }

    /// Counters since the start of the run, ignoring clearing, and the status.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn totals(&self) -> Result<(Counters, Status), Refusal> {
        let snapshot = &self.read(Depth::All).await?.snapshot;
        Ok((Counters::of(&self.info, snapshot), self.status_of(snapshot)))
    }

    /// Clears the counters shown. Those of the devices go on.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn clear(&self) -> Result<(), Refusal> {
        let mut cache = self.read(Depth::All).await?;
        cache.baseline = Some(Counters::of(&self.info, &cache.snapshot));
        Ok(())
    }

    /// Changes the impairment of the frames that `port` sends.
    ///
    /// # Errors
    /// If this process has no such port, no cable is at it, or the worker does not answer.
    pub async fn impair(&self, port: &str, change: ManualImpairment) -> Result<(), Refusal> {
        let (device, number) = self.end(port)?;
        let end = End { node: self.info.nodes[device], port: number };
        let needs_fcs =
            matches!(&change, ManualImpairment::Rule(rule, _) if rule.action == Action::Corrupt);
        if needs_fcs && self.info.config.bare && self.info.config.wiring.attached_at(end).is_none()
        {
            let reason =
                "the cable has no FCS that shows a corrupt frame: name a part of the frame";
            return Err(Refusal::invalid(format!("{port}: {reason}")));
        }
        let spare = Impairer::idle(&self.info.config.wiring, end, self.info.config.seed);
        let change = match change {
            ManualImpairment::Rule(rule, length) => {
                ManualImpairment::Rule(Impairment { from: end, ..rule }, length)
            }
            change => change,
        };
        let impairing = Box::new(ImpairmentChange { device, port: number, change, spare });
        let reason = || Refusal::invalid(format!("{port}: no cable is connected"));
        let is_done = self.ask(|reply| Order::Impair(impairing, reply)).await?;
        is_done.then_some(()).ok_or_else(reason)
    }

    /// Limits the rate at which `port` sends.
    ///
    /// # Errors
    /// If this process has no such port, its line is slower, or the worker does not answer.
    pub async fn slow_down(&self, port: &str, rate: BitRate) -> Result<(), Refusal> {
        let (device, number) = self.end(port)?;
        let reason = || Refusal::invalid(format!("the line at {port} cannot give {rate}"));
        let is_done = self.ask(|reply| Order::SlowDown(device, number, rate, reply)).await?;
        is_done.then_some(()).ok_or_else(reason)
    }

    /// Changes settings of a node, those of a link at `port` or at all its ports.
    ///
    /// # Errors
    /// If this process has no such node or port, the node refuses the change, or the worker does not answer.
    pub async fn change(&self, name: &str, settings: toml::Table) -> Result<(), Refusal> {
        let (node, port) = match self.ends.get(name) {
            Some((device, port)) => (*device, Some(*port)),
            None => (self.device(name)?, None),
        };
        let settings = Box::new(settings);
        let changed = self.ask(|reply| Order::Change(node, port, settings, reply)).await?;
        changed.map_err(|reason| Refusal::invalid(format!("{name}: {reason}")))
    }

    /// The device called `node`.
    fn device(&self, node: &str) -> Result<usize, Refusal> {
        let named = |index: &usize| self.info.config.wiring.nodes[*index].name == node;
        let device = self.info.nodes.iter().position(named);
        device.ok_or_else(|| Refusal::invalid(format!("no node {node} in this process")))
    }

    /// Starts a capture. A running capture ends.
    ///
    /// # Errors
    /// If this process lacks a port, the file is elsewhere, exists or cannot be created, or the worker does not answer.
    pub async fn capture(&self, request: CaptureRequest) -> Result<(), Refusal> {
        let port = |(name, rate): (&String, &BitRate)| {
            let (device, port) = self.end(name)?;
            let at = End { node: self.info.nodes[device], port };
            let technology = self.info.config.technology;
            Ok(CapturedPort { at, technology, rate: *rate, fed: false })
        };
        let plan = CapturePlan {
            file: request.file,
            scenario: self.info.config.lab.clone(),
            seed: self.info.config.seed,
            dilation: Some(self.info.dilation()),
            snaplen: request.snaplen,
            when_full: WhenFull::Drop,
            ports: request.ports.iter().map(port).collect::<Result<_, Refusal>>()?,
        };
        let socket = self.info.config.admin.as_ref().and_then(|admin| admin.socket.as_deref());
        let file = capture_file::open_in(socket.and_then(Path::parent), &plan.file);
        let file = file.map_err(|error| Refusal::invalid(format!("cannot capture: {error}")))?;
        let capture = Capture::into(file, &plan, &self.info.config.wiring, &self.info.nodes);
        let capture = capture.map_err(|error| Refusal::invalid(with_sources(&error)))?;
        let capturing = Some((plan.file, capture.tally()));
        self.swap_capture(Some(Box::new(capture)), capturing).await.map(|_| ())
    }

    /// Ends the running capture, if there is one, and returns its account.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn end_capture(&self) -> Result<Option<CaptureStatistics>, Refusal> {
        self.swap_capture(None, None).await
    }

    async fn swap_capture(
        &self,
        capture: Option<Box<dyn FrameTap>>,
        capturing: Option<(PathBuf, Arc<Tally>)>,
    ) -> Result<Option<CaptureStatistics>, Refusal> {
        let (before, at) = self.ask(|reply| Order::Tap(capture, reply)).await?;
        *self.capturing.lock().unwrap_or_else(PoisonError::into_inner) = capturing;
        let Some(before) = before else { return Ok(None) };
        // The writer may still have megabytes to write.
        let finished = tokio::task::spawn_blocking(move || before.finish(at)).await;
        finished.map(Some).map_err(Refusal::busy)
    }

    /// Device and number of a port by name.
    fn end(&self, port: &str) -> Result<(usize, PortNumber), Refusal> {
        let end = self.ends.get(port).copied();
        end.ok_or_else(|| Refusal::invalid(format!("no port {port} in this process")))
    }

    /// Lets traffic items post messages, or stops them. Returns the number of adapters of this process that have such items.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn let_post(&self, item: Option<String>, on: bool) -> Result<usize, Refusal> {
        self.ask(|reply| Order::Traffic { item, on, reply }).await
    }

    /// Executes lines of calls to the agent of a node; the lines of the answers.
    ///
    /// # Errors
    /// If this process has no such node, the node has no agent, or the worker does not answer.
    pub async fn ask_agent(&self, node: &str, lines: Vec<String>) -> Result<Vec<String>, Refusal> {
        let device = self.device(node)?;
        let answers = self.ask(|reply| Order::Agent(device, lines, reply)).await?;
        answers.ok_or_else(|| Refusal::invalid(format!("node {node} has no agent")))
    }

    /// The account of all frames at an instant; none if that has passed.
    ///
    /// # Errors
    /// If the instant is further ahead than a request may last, or the worker does not answer.
    pub async fn account(&self, at: Instant) -> Result<Option<Box<Account>>, Refusal> {
        if self.info.clock.wall_ns_of(at) > monotonic_ns() + ACCOUNT_AHEAD_MAX_NS {
            let seconds = ACCOUNT_AHEAD_MAX_NS / 1_000_000_000;
            return Err(Refusal::invalid(format!("the instant is more than {seconds} s ahead")));
        }
        self.ask(|reply| Order::Account(at, reply)).await
    }

    /// The cache with a recent snapshot of at least this depth; takes a new one if needed.
    async fn read(&self, depth: Depth) -> Result<MutexGuard<'_, SnapshotCache>, Refusal> {
        let mut cache = self.cache.lock().await;
        let serves =
            |(at, has): &(Stopwatch, Depth)| *has >= depth && at.seconds() <= SNAPSHOT_SERVES_S;
        if !cache.taken.as_ref().is_some_and(serves) {
            // Without an answer there is no snapshot.
            cache.taken = None;
            let snapshot = std::mem::take(&mut cache.snapshot);
            cache.snapshot = self.ask(|reply| Order::Read(snapshot, depth, reply)).await?;
            cache.taken = Some((Stopwatch::start(), depth));
        }
        Ok(cache)
    }

    /// Sends an order to the worker and waits for the answer, which fails if the order is dropped.
    async fn ask<T: Send + 'static>(
        &self,
        order: impl FnOnce(Reply<T>) -> Order,
    ) -> Result<T, Refusal> {
        let (sender, answer) = oneshot::channel();
        // A request that no longer waits has dropped its end.
        let reply = Box::new(|answer| drop(sender.send(answer)));
        self.orders_out.send(order(reply)).map_err(Refusal::busy)?;
        answer.await.map_err(Refusal::busy)
    }
}
