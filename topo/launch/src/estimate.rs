//! The dilation that a live run needs on this host, and its wall time.
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
use scenario::traffic::Offer;

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

fn seconds(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e12
}

/// Data frames that all adapters together offer in a second of fabric time, at the maximum.
fn data_frames_per_s(scenario: &Scenario, lab: &Lab) -> f64 {
    let line = 1.0 / seconds(lab.fabric.tau);
    let offered = |at| -> f64 {
        let items = scenario.traffic.items.iter().filter(|item| item.start <= at && at < item.stop);
        items
            .map(|item| {
                let share = match item.offer {
                    Offer::Load(load) => load,
                    Offer::Rate(rate) => rate.get() as f64 / scenario.fabric.link.rate.get() as f64,
                    Offer::Backlog => 1.0,
                };
                item.from.len() as f64 * share.min(1.0)
            })
            .sum()
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
