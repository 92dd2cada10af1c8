//! Every frame is somewhere: counters against the wire, link by link and switch by switch.

use crate::prelude::*;
use crate::watched::{Watched, watch};
use emulation::wiring::{Action, End, NodeKind};
use proto::frame::FrameClass;

/// Eight nodes, six switches, two lanes, all three services, a hot receiver, and one bad cable of
/// each kind. Traffic stops at 600 τ; what is still under way has 2400 τ to arrive.
const TEXT: &str = include_str!("accounts.toml");

/// What passed one end of a cable one way, as seen on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Passed {
    data: u64,
    octets: u64,
    other: u64,
    link: u64,
}

/// By end, direction (sent is true) and lane.
type Wire = BTreeMap<(End, bool, u8), Passed>;

fn note(wire: &mut Wire, end: End, direction: Direction, frame: &Frame) {
    let lane = match frame.kind {
        FrameKind::InfinibandLink => frame.octets[2] >> 4,
        _ => frame.octets[0] >> 4,
    };
    let passed = wire.entry((end, direction == Direction::Tx, lane)).or_default();
    match frame.kind {
        FrameKind::InfinibandLink => passed.link += 1,
        // What a cable has spoilt is still a packet that passed.
        kind => match classify(kind, &frame.octets).map(|headers| headers.class) {
            Ok(FrameClass::Data) => {
                passed.data += 1;
                passed.octets += frame.octets.len() as u64;
            }
            _ => passed.other += 1,
        },
    }
}

fn sum(wire: &Wire, end: End, sent: bool) -> Passed {
    let mut all = Passed::default();
    for ((_, _, _), passed) in wire.iter().filter(|((e, s, _), _)| (*e, *s) == (end, sent)) {
        all.data += passed.data;
        all.octets += passed.octets;
        all.other += passed.other;
        all.link += passed.link;
    }
    all
}

fn counters(run: &Watched, end: End) -> impl Iterator<Item = (u8, &LaneCounters)> {
    let port = &run.readings[end.node].ports[end.port.index()];
    port.lanes.iter().map(|lane| (lane.tc, &lane.counters))
}

pub fn every_frame_is_sent_dropped_or_kept_at_every_port() -> Finding {
    let mut wire = Wire::new();
    let run = watch(TEXT, |_, _| true, |end, way, frame| note(&mut wire, end, way, frame))?;
    let links = run.lab.fabric.wiring.links.iter();
    let ends: Vec<End> = links.flat_map(|link| [link.a, link.b]).collect();
    for end in &ends {
        counters_agree_with_the_wire(&run, &wire, *end)?;
    }
    let packets = cables_account_for_every_packet(&run, &wire)?;
    switches_account_for_every_packet(&run, &wire)?;
    let injected = run.tally.injected;
    let made: u64 = run.readings.iter().map(|reading| reading.balance.injected).sum();
    let delivered: u64 = run.readings.iter().map(|reading| reading.balance.delivered).sum();
    let ports = run.readings.iter().flat_map(|reading| &reading.ports);
    let drops = ports.flat_map(|port| port.drops.iter());
    let end_to_end = drops.filter(|(reason, _)| reason.is_end_to_end());
    let dropped: u64 = end_to_end.map(|(_, count)| count).sum();
    let (lost, copies) = (injected.lost.end_to_end, injected.duplicated.end_to_end);
    same("packets delivered, dropped and lost", delivered + dropped + lost, made + copies)?;
    same("cables that did nothing", [lost, injected.corrupted, copies].contains(&0), false)?;
    Ok(format!(
        "{} cable ends, {packets} packets over links: made {made}, copied {copies}, delivered {delivered}, dropped {dropped}, lost {lost}, {} damaged; nothing left over",
        ends.len(),
        injected.corrupted
    ))
}

/// A port's counters agree with what passed it; what they do not count as received they count as lost.
fn counters_agree_with_the_wire(run: &Watched, wire: &Wire, end: End) -> Result<()> {
    let name = run.lab.fabric.wiring.end_name(end);
    let of = |sent, lane| wire.get(&(end, sent, lane)).copied().unwrap_or_default();
    let mut received = 0;
    for (lane, counters) in counters(run, end) {
        let sent = of(true, lane);
        same(format!("{name} VL{lane} tx_frames"), counters.tx_frames, sent.data)?;
        same(format!("{name} VL{lane} tx_bytes"), counters.tx_bytes, sent.octets)?;
        same(format!("{name} VL{lane} ctl_tx"), counters.ctl_tx, sent.other + sent.link)?;
        same(format!("{name} VL{lane} octets in its buffer"), counters.in_queue.value, 0)?;
        same(format!("{name} VL{lane} octets for its output"), counters.out_queue.value, 0)?;
        received += counters.rx_frames + counters.ctl_rx;
    }
    let passed = sum(wire, end, false);
    let drops = &run.readings[end.node].ports[end.port.index()].drops;
    // What a NIC refuses it has received first.
    let is_switch = run.lab.fabric.wiring.nodes[end.node].kind == NodeKind::Switch;
    let refused = if is_switch { drops.total() } else { drops.get(DropReason::Vcrc) };
    let came = passed.data + passed.other + passed.link;
    same(format!("{name} frames received and refused"), received + refused, came)
}

/// For each link and way: sent = received + lost − copied. The number of packets.
fn cables_account_for_every_packet(run: &Watched, wire: &Wire) -> Result<u64> {
    let wiring = &run.lab.fabric.wiring;
    let injected = run.tally.injected;
    let mut packets = 0;
    for link in &wiring.links {
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            let [sent, received] = [sum(wire, from, true), sum(wire, to, false)];
            let (sent, received) = (sent.data + sent.other, received.data + received.other);
            let action =
                wiring.impairments.iter().find(|bad| bad.from == from).map(|bad| bad.action);
            let (lost, copied) = match action {
                Some(Action::Lose) => (injected.lost.end_to_end, 0),
                Some(Action::Duplicate) => (0, injected.duplicated.end_to_end),
                _ => (0, 0),
            };
            let name = format!("{} to {}", wiring.end_name(from), wiring.end_name(to));
            same(format!("packets received and lost, {name}"), received + lost, sent + copied)?;
            packets += sent;
            if action == Some(Action::Corrupt) {
                let drops = &run.readings[to.node].ports[to.port.index()].drops;
                same(format!("packets refused, {name}"), drops.total(), injected.corrupted)?;
            }
        }
    }
    Ok(packets)
}

/// For each switch and lane: received = sent. Nothing is dropped behind a port's checks.
fn switches_account_for_every_packet(run: &Watched, wire: &Wire) -> Result<()> {
    let wiring = &run.lab.fabric.wiring;
    for (node, device) in wiring.nodes.iter().enumerate() {
        let reading = &run.readings[node];
        same(format!("packets left in {}", device.name), reading.balance.buffered, 0)?;
        if device.kind != NodeKind::Switch {
            continue;
        }
        for lane in 0..2 {
            let lanes = || reading.ports.iter().map(|port| &port.lanes[lane].counters);
            let received: u64 = lanes().map(|lane| lane.rx_frames).sum();
            let sent: u64 = lanes().map(|lane| lane.tx_frames).sum();
            same(format!("data frames sent by {} on VL{lane}", device.name), sent, received)?;
        }
        let refused: u64 = reading.ports.iter().map(|port| port.drops.total()).sum();
        let of = |sent: bool| {
            let ends = wire.iter().filter(|((end, s, _), _)| end.node == node && *s == sent);
            ends.map(|(_, passed)| passed.data + passed.other).sum::<u64>()
        };
        let what = format!("packets sent and refused by {}", device.name);
        same(what, of(true) + refused, of(false))?;
    }
    Ok(())
}
