//! The JSON of the administration, with the names that operators use. Clients use these types too.

use super::ProcessInfo;
use crate::clients::ClientCounts;
use emulation::cable::exchange::AttachedReading;
use emulation::cable::impairment::Injected;
use emulation::driver::orders::DeviceSnapshot;
use emulation::timer::Priority;
use emulation::wiring::{End, NodeKind};
use proto::counters::{DeviceReading, DropReason, FlowReading, Gauge, LaneReading, PortReading};
use proto::events::CarrierLoss;
use proto::ids::PortNumber;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

mod since;
#[cfg(test)]
mod tests;

/// The status of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The lab's name.
    pub lab: String,
    /// The number of this process.
    pub process: usize,
    /// Version of the program.
    pub version: String,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// Fabric time of the last step, in picoseconds.
    pub at_ps: u64,
    /// Names of its devices.
    pub nodes: Vec<String>,
    /// How the worker is scheduled.
    pub priority: Priority,
    /// Frames that have left a port: frame-hops.
    pub departures: u64,
    /// p99 of lateness, in thousandths of a frame time; none if only ports without a rate have sent.
    pub late_p99_thousandths: Option<u64>,
    /// Frames found missing between processes.
    pub lost: u64,
    /// Frames given up, because a socket did not take them. Their receiver counts them as lost.
    #[serde(default)]
    pub unsent: u64,
    /// Datagrams and records refused, because they are not of this run or not whole.
    #[serde(default)]
    pub refused: u64,
    /// Frames that impairments hit.
    pub injected: Injected,
    /// The attached ports.
    #[serde(default)]
    pub attached: Vec<AttachedStatus>,
    /// The capture that is under way, if there is one.
    #[serde(default)]
    pub capture: Option<CaptureStatus>,
    /// Counts of programs beside devices, in a managed fabric.
    #[serde(default)]
    pub clients: Option<ClientCounts>,
}

/// The state of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatus {
    /// The file or pipe.
    pub file: PathBuf,
    /// Frames that have passed the captured ports.
    pub seen: u64,
    /// Frames among them that will not be in the file.
    pub dropped: u64,
    /// Why the file cannot be written any more, if so.
    pub error: Option<String>,
}

/// The state of an attached port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedStatus {
    /// Its name, for example `leaf1:4`.
    pub port: String,
    /// The interface.
    pub interface: String,
    /// "up", or why the interface cannot send: "down", "no-carrier", "removed".
    pub state: String,
    /// The MTU of the interface in octets, if known.
    pub mtu: Option<usize>,
    /// Frames dropped because the interface could not send.
    pub interface_down: u64,
    /// Frames dropped because they are longer than its MTU permits.
    pub interface_mtu: u64,
}

/// The counters of all devices of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Fabric time of the last step, in picoseconds.
    pub at_ps: u64,
    /// Fabric time in picoseconds at which counters were cleared, if they were; totals start there.
    pub cleared_ps: Option<u64>,
    /// By device.
    pub nodes: Vec<NodeCounters>,
}

/// The counters of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCounters {
    /// Its name.
    pub node: String,
    /// Switch or NIC.
    pub kind: NodeKind,
    /// By port.
    pub ports: Vec<PortCounters>,
    /// Flows that it sends.
    pub flows: Vec<FlowCounters>,
}

/// The counters of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Its name, for example `leaf1:4`.
    pub port: String,
    /// Whether a cable is connected.
    pub cabled: bool,
    /// By virtual lane or priority.
    pub lanes: Vec<LaneCounters>,
    /// Frames dropped, by reason, without reasons that did not occur.
    pub drops: BTreeMap<String, u64>,
    /// Frames that the port sent and that impairments hit: lost by faults and cuts, altered, copied, delayed.
    #[serde(default)]
    pub injected: InjectedCounters,
    /// Watchdog timeouts that retrained the link.
    pub watchdogs: u64,
    /// Further counters under operators' names.
    pub named: BTreeMap<String, u64>,
}

/// Frames of one port that impairments hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedCounters {
    /// Frames lost.
    pub lost: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Copies added.
    pub duplicated: u64,
    /// Frames delayed.
    pub delayed: u64,
}

/// The counters of one lane of a port. Bytes are octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounters {
    /// Virtual lane or priority.
    pub lane: u8,
    /// Data frames sent.
    pub tx_frames: u64,
    /// Octets of them.
    pub tx_bytes: u64,
    /// Data frames received.
    pub rx_frames: u64,
    /// Octets of them.
    pub rx_bytes: u64,
    /// Other frames sent.
    pub tx_control: u64,
    /// Other frames received.
    pub rx_control: u64,
    /// Picoseconds in which a frame was ready and flow control blocked it (PortXmitWait).
    pub wait_ps: u64,
    /// Picoseconds in which flow control blocked the lane, with or without a ready frame.
    pub pause_ps: u64,
    /// Frames dropped because a buffer was full.
    pub no_room: u64,
    /// Frames marked by the congestion point.
    pub marks: u64,
    /// Congestion notifications sent.
    pub notes_tx: u64,
    /// Congestion notifications received.
    pub notes_rx: u64,
    /// Octets waiting for transmission.
    pub out_queue: Level,
    /// Octets in the input buffer.
    pub in_queue: Level,
    /// Octets that workloads have posted and that were not sent yet.
    pub source_queue: Level,
}

/// The totals of a daemon's outputs since the start of the run, ignoring clearing: the few numbers that a
/// picture of the fabric needs, for clients that poll often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Fabric time of the last step, in picoseconds.
    pub at_ps: u64,
    /// p99 of lateness, in thousandths of a frame time; none if only ports without a rate have sent.
    pub late_p99_thousandths: Option<u64>,
    /// Frames found missing between processes.
    pub lost: u64,
    /// By port with a cable.
    pub ports: Vec<OutputCounters>,
}

/// The totals of one output, summed over its lanes except `wait_ps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputCounters {
    /// Its name, for example `leaf1:4`.
    pub port: String,
    /// By lane: picoseconds in which a frame was ready and flow control blocked it.
    pub wait_ps: Vec<u64>,
    /// Octets waiting for transmission now.
    pub queue: u64,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Frames dropped, for any reason.
    pub drops: u64,
}

/// The level of a queue, in octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Now.
    pub now: u64,
    /// The maximum since the start of the run.
    pub most: u64,
}

/// The counters of one flow at the adapter that sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounters {
    /// The sender's address: a LID, or a MAC address as a number.
    pub source: u64,
    /// The receiver's address, of the same kind.
    pub destination: u64,
    /// Connection class.
    pub class: u8,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Permitted rate, in bit/s.
    pub rate: u64,
    /// Required gap between frames, in picoseconds.
    pub gap_ps: u64,
    /// The scheme's own state.
    pub state: u64,
    /// Whether the reaction point limits the flow now.
    pub held_back: bool,
    /// Messages posted.
    pub messages: u64,
    /// Messages completed.
    pub completed: u64,
    /// Notifications received.
    pub notes: u64,
}

impl Status {
    /// The status in `snapshot`.
    pub(crate) fn of(
        info: &ProcessInfo,
        snapshot: &DeviceSnapshot,
        capture: Option<CaptureStatus>,
    ) -> Status {
        let beat = &snapshot.beat;
        let name = |node: &usize| info.config.wiring.nodes[*node].name.clone();
        Status {
            lab: info.config.lab.clone(),
            process: info.config.process,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            dilation: info.dilation(),
            at_ps: beat.at.as_ps(),
            nodes: info.nodes.iter().map(name).collect(),
            priority: info.priority,
            departures: beat.departures,
            late_p99_thousandths: beat.late_p99_thousandths,
            lost: beat.lost,
            unsent: beat.unsent,
            refused: beat.rejected.total(),
            injected: snapshot.injected,
            attached: snapshot.attached.iter().map(|one| attached_status(info, one)).collect(),
            capture,
            clients: info.clients.as_ref().map(|tally| tally.read()),
        }
    }
}

impl Outputs {
    /// The totals in `snapshot` of `outputs`, given as name, device and port.
    pub fn of(outputs: &[(String, usize, PortNumber)], snapshot: &DeviceSnapshot) -> Outputs {
        let ports = outputs.iter().filter_map(|(name, device, port)| {
            let reading = snapshot.devices.get(*device)?.ports.get(port.index())?;
            let lanes = || reading.lanes.iter().map(|lane| &lane.counters);
            Some(OutputCounters {
                port: name.clone(),
                wait_ps: lanes().map(|lane| lane.hold_ps).collect(),
                queue: lanes().map(|lane| lane.out_queue.value).sum(),
                tx_bytes: lanes().map(|lane| lane.tx_bytes).sum(),
                drops: reading.drops.total(),
            })
        });
        Outputs {
            at_ps: snapshot.beat.at.as_ps(),
            late_p99_thousandths: snapshot.beat.late_p99_thousandths,
            lost: snapshot.beat.lost,
            ports: ports.collect(),
        }
    }
}

impl Counters {
    /// The counters in `snapshot`.
    pub(crate) fn of(info: &ProcessInfo, snapshot: &DeviceSnapshot) -> Counters {
        let devices = info.nodes.iter().zip(&snapshot.devices);
        let mut nodes: Vec<NodeCounters> =
            devices.map(|(node, reading)| node_counters(info, *node, reading)).collect();
        for (device, port, injected) in &snapshot.injected_at {
            let node = nodes.get_mut(*device);
            if let Some(port) = node.and_then(|node| node.ports.get_mut(port.index())) {
                port.injected = injected_counters(injected);
            }
        }
        Counters { at_ps: snapshot.beat.at.as_ps(), cleared_ps: None, nodes }
            .with_attached(snapshot)
    }

    /// Adds the frames that were dropped at attached interfaces to the drops of their ports.
    fn with_attached(mut self, snapshot: &DeviceSnapshot) -> Counters {
        for reading in &snapshot.attached {
            let node = self.nodes.get_mut(reading.device);
            let Some(port) = node.and_then(|node| node.ports.get_mut(reading.port.index())) else {
                continue;
            };
            let reasons = [
                (DropReason::InterfaceDown, reading.away),
                (DropReason::InterfaceMtu, reading.too_long),
            ];
            for (reason, tally) in reasons.into_iter().filter(|(_, tally)| tally.total() > 0) {
                *port.drops.entry(reason.name().to_owned()).or_default() += tally.total();
            }
        }
        self
    }
}

fn attached_status(info: &ProcessInfo, reading: &AttachedReading) -> AttachedStatus {
    let at = End { node: info.nodes[reading.device], port: reading.port };
    let wiring = &info.config.wiring;
    let attached = wiring.attached.iter().find(|attached| attached.at == at);
    let state = match reading.loss {
        None => "up",
        Some(CarrierLoss::Down) => "down",
        Some(CarrierLoss::NoCarrier) => "no-carrier",
        Some(CarrierLoss::Removed) => "removed",
        Some(CarrierLoss::NoPeer) => "no-peer",
    };
    AttachedStatus {
        port: wiring.end_name(at),
        interface: attached.map_or_else(String::new, |attached| attached.interface.clone()),
        state: state.to_owned(),
        mtu: reading.mtu,
        interface_down: reading.away.total(),
        interface_mtu: reading.too_long.total(),
    }
}

fn node_counters(info: &ProcessInfo, node: usize, reading: &DeviceReading) -> NodeCounters {
    let wiring = &info.config.wiring.nodes[node];
    let ports = reading.ports.iter().enumerate().map(|(index, reading)| {
        let end = End { node, port: PortNumber::from_index(index) };
        port_counters(info, end, reading)
    });
    NodeCounters {
        node: wiring.name.clone(),
        kind: wiring.kind,
        ports: ports.collect(),
        flows: reading.flows.iter().map(flow_counters).collect(),
    }
}

fn port_counters(info: &ProcessInfo, end: End, reading: &PortReading) -> PortCounters {
    let wiring = &info.config.wiring;
    let drops = reading.drops.iter().filter(|(_, count)| *count > 0);
    PortCounters {
        port: wiring.end_name(end),
        cabled: wiring.peer(end).is_some() || wiring.attached_at(end).is_some(),
        lanes: reading.lanes.iter().map(lane_counters).collect(),
        drops: drops.map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
        injected: InjectedCounters::default(),
        watchdogs: reading.watchdogs,
        named: reading.named.iter().cloned().collect(),
    }
}

const fn injected_counters(injected: &Injected) -> InjectedCounters {
    InjectedCounters {
        lost: injected.lost.total(),
        corrupted: injected.corrupted,
        duplicated: injected.duplicated.total(),
        delayed: injected.delayed,
    }
}

fn lane_counters(LaneReading { tc, counters }: &LaneReading) -> LaneCounters {
    LaneCounters {
        lane: *tc,
        tx_frames: counters.tx_frames,
        tx_bytes: counters.tx_bytes,
        rx_frames: counters.rx_frames,
        rx_bytes: counters.rx_bytes,
        tx_control: counters.ctl_tx,
        rx_control: counters.ctl_rx,
        wait_ps: counters.hold_ps,
        pause_ps: counters.pause_ps,
        no_room: counters.no_room,
        marks: counters.marks,
        notes_tx: counters.notes_tx,
        notes_rx: counters.notes_rx,
        out_queue: level(&counters.out_queue),
        in_queue: level(&counters.in_queue),
        source_queue: level(&counters.source_queue),
    }
}

const fn level(gauge: &Gauge) -> Level {
    Level { now: gauge.value, most: gauge.peak }
}

fn flow_counters(reading: &FlowReading) -> FlowCounters {
    FlowCounters {
        source: reading.flow.source,
        destination: reading.flow.destination,
        class: reading.flow.class,
        tx_bytes: reading.tx_bytes,
        rate: reading.rate.value,
        gap_ps: reading.gap.value,
        state: reading.scalar,
        held_back: reading.neutral_since.is_none(),
        messages: reading.messages,
        completed: reading.completed,
        notes: reading.notes,
    }
}
