//! The dilation that a live run needs on this host, and the wall time of runs.
//!
//! The dilation is the largest of three: a frame time on the wall clock must be long compared with the wake-up
//! latency of the host, the frames in a second must not exceed the capacity of the host, and measured windows must be
//! long compared with its stalls.

use crate::calibration::Calibration;
use emulation::wiring::NodeKind;
use proto::technology::Technology;
use proto::units::Duration;
use scenario::Scenario;
use scenario::render::Lab;
use scenario::routes::distances;
use scenario::run::{Backend, Dilate};
use scenario::topology::Topology;
use scenario::traffic::{Offer, Receivers, Traffic};

/// The shortest frame time on the wall clock with real-time priority, in seconds.
const FRAME_TIME_REALTIME_S: f64 = 1.0e-3;
/// The same without real-time priority.
const FRAME_TIME_ORDINARY_S: f64 = 2.0e-3;
/// The factor for bare cables, where no frame can leave early to compensate for late wake-ups, and each hop
/// inherits the lateness of the last one. With 1.2 the most demanding run was 0.09 frame times late.
const BARE_FACTOR: f64 = 2.0;
/// Frames of any kind for one data frame and link: the frame, the credits that it frees, and its share of
/// acknowledgements. Measured on case 4 with an acknowledgement for each frame: 2.8.
const FRAMES_A_DATA_FRAME: f64 = 3.0;

/// The least wall time of the measured windows of a run. A hundredth of it may be late, so a stall of 20 or 30 ms, which
/// hosts have now and then, does not decide about the run.
const MEASURED_S: f64 = 3.0;
/// The most that a run is slowed down for its short windows.
const MEASURED_FACTOR: f64 = 4.0;

/// The fabric for which the speed of the virtual clock is measured has so many devices.
const DEVICES: f64 = 44.0;
/// With a fabric of n times as many devices a thread handles this power of n times as many frame-hops in a second:
/// 1.47 M with 44, 0.82 M with 152, 0.50 M with 612 (docs/performance.md 2).
const DEVICES_POWER: f64 = -0.4;
/// The gain of each further thread; 0.2 with 44 devices, 0.8 with 152 (docs/performance.md 2).
const THREAD_GAIN: f64 = 0.6;

/// The dilation and duration of a live run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Wall time over fabric time.
    pub dilation: u64,
    /// A run may go beyond it: the scenario leaves the dilation to the host.
    pub elastic: bool,
    /// Wall time of the run.
    pub wall_seconds: f64,
    /// Frames of any kind that cross a link, by wall second.
    pub frame_hops_per_s: f64,
}

/// Estimates a run of `scenario` on `host` that is measured and judged.
pub fn run(scenario: &Scenario, lab: &Lab, host: &Calibration) -> Estimate {
    let least = live(scenario, lab, host);
    let windows = lab.plan.measured.iter().map(|(from, to)| seconds(to.since(*from))).sum::<f64>();
    let factor = MEASURED_S / (windows * least.dilation as f64);
    let is_free = least.elastic && lab.fabric.wiring.attached.is_empty();
    let factor = if is_free { factor.clamp(1.0, MEASURED_FACTOR) } else { 1.0 };
    Estimate {
        dilation: (least.dilation as f64 * factor).ceil() as u64,
        wall_seconds: least.wall_seconds * factor,
        frame_hops_per_s: least.frame_hops_per_s / factor,
        ..least
    }
}

/// Estimates what `scenario` needs live on `host`, however long it lasts.
pub fn live(scenario: &Scenario, lab: &Lab, host: &Calibration) -> Estimate {
    // Lateness is measured in frame times of the port, so the fastest link is decisive.
    let fastest = lab.fabric.wiring.links.iter().map(|link| link.frame_time).min();
    let tau_s = seconds(fastest.unwrap_or(lab.fabric.tau));
    let hops_per_fabric_s = data_frames_per_s(scenario, lab)
        * mean_hops(&scenario.fabric.topology)
        * FRAMES_A_DATA_FRAME;
    let is_bare = scenario.run.backend == Backend::Netns
        && scenario.fabric.technology == Technology::Ethernet;
    // Whether daemons elsewhere get real-time priority is not known before they run. Containers have none
    // where the kernel assigns it by cgroup.
    let is_elsewhere = matches!(scenario.run.backend, Backend::Compose | Backend::Remote);
    let is_realtime = host.realtime && scenario.run.realtime && !is_elsewhere;
    let shortest = if is_realtime { FRAME_TIME_REALTIME_S } else { FRAME_TIME_ORDINARY_S };
    let shortest = if is_bare { BARE_FACTOR * shortest } else { shortest };
    let dilation = match scenario.run.dilate {
        // Attached equipment runs in real time.
        _ if !lab.fabric.wiring.attached.is_empty() => 1.0,
        Dilate::By(factor) => factor.max(1.0),
        Dilate::Auto => (shortest / tau_s).max(hops_per_fabric_s / host.frame_hops_per_s).max(1.0),
    };
    let dilation = dilation.ceil();
    Estimate {
        dilation: dilation as u64,
        elastic: scenario.run.dilate == Dilate::Auto,
        wall_seconds: seconds(scenario.run.duration) * dilation,
        frame_hops_per_s: hops_per_fabric_s / dilation,
    }
}

/// Estimates the wall time of a run on the virtual clock, in seconds. One thread of the host handles `frame_hops_per_s` of a
/// fabric of 44 devices.
pub fn virtual_clock(scenario: &Scenario, lab: &Lab, frame_hops_per_s: f64, threads: usize) -> f64 {
    let devices = lab.fabric.wiring.nodes.len().max(1) as f64;
    let gain = 1.0 + THREAD_GAIN * (threads.max(1) - 1) as f64;
    let speed = frame_hops_per_s * (devices / DEVICES).powf(DEVICES_POWER) * gain;
    let hops = mean_hops(&scenario.fabric.topology) * FRAMES_A_DATA_FRAME;
    data_frames(scenario, lab) * hops / speed
}

/// Data frames of a whole run: what is offered, as far as senders and named receivers can take it.
fn data_frames(scenario: &Scenario, lab: &Lab) -> f64 {
    let (tau_s, end) = (seconds(lab.fabric.tau), scenario.run.end());
    let mtu = scenario.fabric.mtu.get().max(1) as f64;
    let of = |item: &Traffic| -> f64 {
        let from = item.from.len() as f64;
        let lines = (from * share(scenario, item)).min(match &item.to {
            Receivers::Nodes(nodes) | Receivers::Dealt(nodes) => nodes.len() as f64,
            Receivers::Script(replay) => return from * seconds(replay.ideal) / tau_s,
            Receivers::Uniform
            | Receivers::Permutation
            | Receivers::Group(_)
            | Receivers::Foreign(_) => from,
        });
        let lasts = seconds(item.stop.min(end).since(item.start));
        let small = (mtu / item.size.get().max(1) as f64).clamp(1.0, mtu);
        lines * small * lasts / tau_s
    };
    scenario.traffic.items.iter().map(of).sum()
}

/// What each source of an item offers, as a share of its line.
fn share(scenario: &Scenario, item: &Traffic) -> f64 {
    let share = match item.offer {
        Offer::Load(load) => load,
        Offer::Rate(rate) => rate.get() as f64 / scenario.fabric.link.rate.get() as f64,
        Offer::Backlog => 1.0,
    };
    share.min(1.0)
}

fn seconds(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e12
}

/// Data frames that all adapters together offer in a second of fabric time, at the maximum.
fn data_frames_per_s(scenario: &Scenario, lab: &Lab) -> f64 {
    let line = 1.0 / seconds(lab.fabric.tau);
    let offered = |at| -> f64 {
        let items = scenario.traffic.items.iter().filter(|item| item.start <= at && at < item.stop);
        items.map(|item| item.from.len() as f64 * share(scenario, item)).sum()
    };
    let busiest = scenario.traffic.items.iter().map(|item| offered(item.start)).fold(0.0, f64::max);
    // No adapter sends faster than its line.
    busiest.min(lab.nics.len() as f64) * line
}

/// The mean number of links from the first adapter to another.
fn mean_hops(topology: &Topology) -> f64 {
    let adapters =
        || (0..topology.nodes.len()).filter(|n| topology.nodes[*n].kind == NodeKind::Nic);
    let Some(from) = adapters().next() else { return 1.0 };
    let distances = distances(topology, &topology.neighbours(), from);
    let hops: Vec<u32> =
        adapters().filter_map(|node| distances[node]).filter(|hops| *hops > 0).collect();
    if hops.is_empty() { 1.0 } else { f64::from(hops.iter().sum::<u32>()) / hops.len() as f64 }
}
