//! The handle between HTTP requests and the worker: orders in a bounded channel, and snapshots that concurrent
//! requests share.

use super::view::{Baseline, Counters, Outputs, Status};
use crate::error::with_sources;
use capture::{Capture, CapturePlan, CapturedPort, WhenFull};
use emulation::cable::impairment::{Impairer, ManualImpairment};
use emulation::clock::{Clock, Stopwatch};
use emulation::driver::orders::{DeviceSnapshot, ImpairmentChange, Order, Reply};
use emulation::frame_tap::{CaptureStatistics, FrameTap};
use emulation::timer::Priority;
use emulation::wiring::{End, Wiring};
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::{Mutex, oneshot};

/// Orders that may wait for the worker.
const ORDERS_MAX: usize = 16;
/// How long a snapshot is reused, in seconds: the worker reads its devices ten times a second at most.
const SNAPSHOT_SERVES_S: f64 = 0.1;

/// The properties of a daemon that do not change while it runs.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// The lab's name.
    pub lab: String,
    /// The number of this process.
    pub process: usize,
    /// The scenario's seed.
    pub seed: u64,
    /// This process's nodes, in the order of the worker's devices.
    pub nodes: Vec<usize>,
    /// The whole fabric.
    pub wiring: Wiring,
    /// Fabric time.
    pub clock: Clock,
    /// How the worker is scheduled.
    pub priority: Priority,
    /// The technology of the fabric.
    pub technology: Technology,
}

impl ProcessInfo {
    /// Device and port of the worker by name, for example `leaf1:4`.
    fn ends(&self) -> BTreeMap<String, (usize, PortNumber)> {
        let ports = self.nodes.iter().enumerate().flat_map(|(device, node)| {
            (0..usize::from(self.wiring.nodes[*node].ports)).map(move |port| {
                let port = PortNumber::from_index(port);
                (self.wiring.end_name(End { node: *node, port }), (device, port))
            })
        });
        ports.collect()
    }

    /// Name, device and port of the ports with a cable, in the order of the wiring.
    fn outputs(&self) -> Vec<(String, usize, PortNumber)> {
        let wiring = &self.wiring;
        let ends = wiring.links.iter().flat_map(|link| [link.a, link.b]);
        let own = ends.filter_map(|end| {
            let device = self.nodes.iter().position(|node| *node == end.node)?;
            Some((wiring.end_name(end), device, end.port))
        });
        own.collect()
    }
}

/// The worker's end of the order channel.
#[derive(Debug)]
pub(crate) struct OrderReceiver {
    waiting: Arc<AtomicBool>,
    orders: Receiver<Order>,
}

impl OrderReceiver {
    /// The next order. Without one, the usual case, this only reads a flag.
    pub fn next(&self) -> Option<Order> {
        if !self.waiting.load(Ordering::Relaxed) {
            return None;
        }
        self.orders.try_recv().ok().or_else(|| {
            // A swap, since a plain store could become visible after the receive below: an order whose flag was
            // set before the swap is received there, and a later one sets the flag again.
            self.waiting.swap(false, Ordering::AcqRel);
            self.orders.try_recv().ok()
        })
    }
}

/// The administration's end of the order channel.
#[derive(Clone, Debug)]
pub(crate) struct OrderSender {
    waiting: Arc<AtomicBool>,
    orders: SyncSender<Order>,
}

/// A channel of orders.
pub fn orders() -> (OrderSender, OrderReceiver) {
    let (sender, orders) = sync_channel(ORDERS_MAX);
    let waiting = Arc::new(AtomicBool::new(false));
    (
        OrderSender { waiting: Arc::clone(&waiting), orders: sender },
        OrderReceiver { waiting, orders },
    )
}

/// A request to capture frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// The file, which the daemon creates.
    pub file: PathBuf,
    /// Names of the ports, and the rate that the capture states for each.
    pub ports: BTreeMap<String, BitRate>,
    /// Octets kept of each frame; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snaplen: Option<Bytes>,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request is not valid for this process, for this reason.
    Invalid(String),
    /// The worker is overloaded or has ended.
    Busy,
}

/// A reply, and a receiver of its answer, which fails if the order is dropped.
fn reply<T: Send + 'static>() -> (Reply<T>, oneshot::Receiver<T>) {
    let (sender, answer) = oneshot::channel();
    // A caller that no longer waits has dropped its end.
    let deliver = |answer| drop(sender.send(answer));
    (Box::new(deliver), answer)
}

/// The last snapshot, and the counters to subtract from it.
#[derive(Debug, Default)]
struct SnapshotCache {
    taken: Option<CachedSnapshot>,
    baseline: Option<Baseline>,
}

#[derive(Debug)]
struct CachedSnapshot {
    at: Stopwatch,
    depth: Depth,
    snapshot: Box<DeviceSnapshot>,
}

impl CachedSnapshot {
    /// Whether it is recent enough and at least this deep.
    fn serves(&self, depth: Depth) -> bool {
        self.depth >= depth && self.at.seconds() <= SNAPSHOT_SERVES_S
    }
}

/// Administers one worker; HTTP requests share it.
#[derive(Debug)]
pub(crate) struct AdminHandle {
    info: ProcessInfo,
    ends: BTreeMap<String, (usize, PortNumber)>,
    outputs: Vec<(String, usize, PortNumber)>,
    orders_out: OrderSender,
    cache: Mutex<SnapshotCache>,
}

impl AdminHandle {
    /// A handle for the worker that receives from `orders_out`.
    pub fn new(info: ProcessInfo, orders_out: OrderSender) -> AdminHandle {
        let (ends, outputs) = (info.ends(), info.outputs());
        AdminHandle { info, ends, outputs, orders_out, cache: Mutex::default() }
    }

    /// The properties that do not change.
    pub fn info(&self) -> &ProcessInfo {
        &self.info
    }

    /// The worker's status.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn status(&self) -> Result<Status, Refusal> {
        self.with_snapshot(Depth::Ports, |snapshot, _| Status::of(&self.info, snapshot)).await
    }

    /// The totals of all outputs since the start of the run.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn outputs(&self) -> Result<Outputs, Refusal> {
        self.with_snapshot(Depth::Ports, |snapshot, _| Outputs::of(&self.outputs, snapshot)).await
    }

    /// All counters since they were last cleared, or since the start of the run.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn counters(&self) -> Result<Counters, Refusal> {
        self.with_snapshot(Depth::All, |snapshot, baseline| {
            let counters = Counters::of(&self.info, snapshot);
            match baseline {
                Some(baseline) => counters.since(baseline),
                None => counters,
            }
        })
        .await
    }

    /// Counters since the start of the run, ignoring clearing, and the status.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn totals(&self) -> Result<(Counters, Status), Refusal> {
        let both = |snapshot: &DeviceSnapshot, _: Option<&Baseline>| {
            (Counters::of(&self.info, snapshot), Status::of(&self.info, snapshot))
        };
        self.with_snapshot(Depth::All, both).await
    }

    /// Clears the counters shown. Those of the devices go on.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn clear(&self) -> Result<(), Refusal> {
        let now = self
            .with_snapshot(Depth::All, |snapshot, _| Counters::of(&self.info, snapshot))
            .await?;
        self.cache.lock().await.baseline = Some(Baseline::of(now));
        Ok(())
    }

    /// Changes the impairment of the frames that `port` sends.
    ///
    /// # Errors
    /// If this process has no such port, no cable is at it, or the worker does not answer.
    pub async fn impair(&self, port: &str, change: ManualImpairment) -> Result<(), Refusal> {
        let (device, number) = self.end(port)?;
        let end = End { node: self.info.nodes[device], port: number };
        let spare = Impairer::idle(&self.info.wiring, end, self.info.seed);
        let change = match change {
            ManualImpairment::Rule(rule, length) => {
                ManualImpairment::Rule(emulation::wiring::Impairment { from: end, ..rule }, length)
            }
            change => change,
        };
        let (reply, answer) = reply();
        let impairing = ImpairmentChange { device, port: number, change, spare };
        self.send(Order::Impair(Box::new(impairing), reply))?;
        let reason = || Refusal::Invalid(format!("{port}: no cable is connected"));
        answer.await.map_err(|_| Refusal::Busy)?.then_some(()).ok_or_else(reason)
    }

    /// Limits the rate at which `port` sends.
    ///
    /// # Errors
    /// If this process has no such port, its line is slower, or the worker does not answer.
    pub async fn slow_down(&self, port: &str, rate: BitRate) -> Result<(), Refusal> {
        let (device, number) = self.end(port)?;
        let (reply, answer) = reply();
        self.send(Order::SlowDown(device, number, rate, reply))?;
        let reason = || Refusal::Invalid(format!("the line at {port} cannot give {rate}"));
        answer.await.map_err(|_| Refusal::Busy)?.then_some(()).ok_or_else(reason)
    }

    /// Starts a capture. A running capture ends.
    ///
    /// # Errors
    /// If this process lacks a port, the file cannot be created, or the worker does not answer.
    pub async fn capture(&self, request: CaptureRequest) -> Result<(), Refusal> {
        let port = |(name, rate): (&String, &BitRate)| {
            let (device, port) = self.end(name)?;
            let at = End { node: self.info.nodes[device], port };
            Ok(CapturedPort { at, technology: self.info.technology, rate: *rate, fed: false })
        };
        let plan = CapturePlan {
            file: request.file,
            scenario: self.info.lab.clone(),
            seed: self.info.seed,
            dilation: Some(self.info.clock.dilation().get()),
            snaplen: request.snaplen,
            when_full: WhenFull::Drop,
            ports: request.ports.iter().map(port).collect::<Result<_, Refusal>>()?,
        };
        let capture = Capture::create(&plan, &self.info.wiring, &self.info.nodes);
        let capture = capture.map_err(|error| Refusal::Invalid(with_sources(&error)))?;
        self.swap_capture(Some(Box::new(capture))).await.map(|_| ())
    }

    /// Ends the running capture, if there is one, and returns its account.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn end_capture(&self) -> Result<Option<CaptureStatistics>, Refusal> {
        self.swap_capture(None).await
    }

    async fn swap_capture(
        &self,
        capture: Option<Box<dyn FrameTap>>,
    ) -> Result<Option<CaptureStatistics>, Refusal> {
        let (reply, answer) = reply();
        self.send(Order::Tap(capture, reply))?;
        let (before, at) = answer.await.map_err(|_| Refusal::Busy)?;
        let Some(before) = before else { return Ok(None) };
        // The writer may still have megabytes to write.
        let finished = tokio::task::spawn_blocking(move || before.finish(at)).await;
        finished.map(Some).map_err(|_| Refusal::Busy)
    }

    /// Device and number of a port by name.
    fn end(&self, port: &str) -> Result<(usize, PortNumber), Refusal> {
        let end = self.ends.get(port).copied();
        end.ok_or_else(|| Refusal::Invalid(format!("no port {port} in this process")))
    }

    /// Lets traffic items post messages, or stops them. Returns the number of adapters of this process that have such items.
    ///
    /// # Errors
    /// If the worker does not answer.
    pub async fn let_post(&self, item: Option<String>, on: bool) -> Result<usize, Refusal> {
        let (reply, answer) = reply();
        self.send(Order::Traffic { item, on, reply })?;
        answer.await.map_err(|_| Refusal::Busy)
    }

    /// Converts a recent snapshot of at least this depth with `make`; takes a new one if needed.
    async fn with_snapshot<T>(
        &self,
        depth: Depth,
        make: impl Fn(&DeviceSnapshot, Option<&Baseline>) -> T,
    ) -> Result<T, Refusal> {
        let mut cache = self.cache.lock().await;
        if !cache.taken.as_ref().is_some_and(|taken| taken.serves(depth)) {
            let snapshot = cache.taken.take().map(|taken| taken.snapshot).unwrap_or_default();
            let (reply, answer) = reply();
            self.send(Order::Read(snapshot, depth, reply))?;
            let snapshot = answer.await.map_err(|_| Refusal::Busy)?;
            cache.taken = Some(CachedSnapshot { at: Stopwatch::start(), depth, snapshot });
        }
        let SnapshotCache { taken, baseline } = &*cache;
        let taken = taken.as_ref().ok_or(Refusal::Busy)?;
        Ok(make(&taken.snapshot, baseline.as_ref()))
    }

    fn send(&self, order: Order) -> Result<(), Refusal> {
        self.orders_out.orders.try_send(order).map_err(|_| Refusal::Busy)?;
        self.orders_out.waiting.store(true, Ordering::Release);
        Ok(())
    }
}
