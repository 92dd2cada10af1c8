//! L2 and LAG: latency of frames one at a time, order of many flows, and groups of links.

use super::{Scripts, Switch};
use crate::verdict::{Check, Fault, must};
use proto::frame::Frame;
use proto::units::Duration;
use proto::wire::ethernet::MacAddress;
use proto::wire::internet::Udp;
use proto::wire::roce::{NetworkHeaders, Packet};
use std::collections::{BTreeMap, BTreeSet};
use testbed::frames::ethernet::{frame, readdressed, roce};

pub(super) const SCRIPTS: Scripts = &[
    ("L2-18", latency),
    ("L2-19", flows),
    ("LAG-01", one_member),
    ("LAG-02", both_members),
    ("LAG-03", one_copy),
    ("LAG-04", none_back),
];

/// Frames one at a time.
const SINGLES: usize = 500;
/// The interval at which ports are read for a latency, in nanoseconds.
const TURN_NS: u64 = 20_000;
/// The longest transit that is recommended. Source: IEEE 802.1D-2004, 7.10.3 and table 7-5 as far as remembered.
const TRANSIT: Duration = Duration::from_us(1_000_000);
/// Flows at once, and frames of each.
const FLOWS: u32 = 64;
const EACH: u32 = 40;

/// The percentile, in microseconds.
fn at(sorted: &[Duration], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100].as_ps() / 1_000_000
}

fn latency(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let mut taken = Vec::with_capacity(SINGLES);
    for number in 0..SINGLES {
        let mark = switch.line.seen.len();
        let frame = switch.frame(b, a, 200, number as u32);
        let began = switch.line.now();
        switch.line.send(1, &frame.octets)?;
        let until = began + TRANSIT;
        let came = switch
            .line
            .wait_by(TURN_NS, until, |seen| seen[mark..].iter().any(|one| one.port == 2))?;
        must!(came, "frame {number} of {SINGLES} does not come within 1 s");
        let first = switch.line.seen[mark..].iter().find(|seen| seen.port == 2);
        taken.extend(first.map(|seen| seen.at.since(began)));
    }
    taken.sort_unstable();
    let (median, most) = (at(&taken, 50), at(&taken, 99));
    let jitter = most - median;
    let text = format!(
        "of {SINGLES} frames {} to {} us, {median} in the median, 99 % within {most}: a jitter of {jitter} us",
        at(&taken, 0),
        at(&taken, 100)
    );
    let exceeds =
        |limit: Option<Duration>, us: u64| limit.is_some_and(|limit| Duration::from_us(us) > limit);
    let tolerance = &switch.file.tolerance;
    match exceeds(tolerance.latency, median) || exceeds(tolerance.jitter, jitter) {
        true => Err(Fault::deviation(text)),
        false => Ok(text),
    }
}

/// A frame of a flow: each has a source, a queue pair and a UDP port of its own, and numbers its frames.
fn of_flow(switch: &Switch<'_>, to: MacAddress, flow: u32, number: u32) -> Frame {
    let mut builder = roce(1, 2, 3, number);
    if let NetworkHeaders::Ipv4(ip, options, _) = builder.network {
        builder.network = NetworkHeaders::Ipv4(ip, options, Udp::roce(0xc000 + flow as u16));
    }
    readdressed(
        frame(&builder, 100 + (number as usize % 3) * 200),
        to,
        switch.station(100 + flow as u16),
    )
}

/// What came of a flow: ports and numbers, in order.
type Came = BTreeMap<u32, Vec<(u8, u32)>>;

/// Sends all flows in turn to `to`, so fast that frames of several wait at once.
fn all_flows(switch: &mut Switch<'_>, to: MacAddress) -> Check<Came> {
    let mark = switch.line.seen.len();
    for number in 0..EACH {
        for flow in 0..FLOWS {
            let frame = of_flow(switch, to, flow, number);
            switch.line.send(1, &frame.octets)?;
            switch.line.poll()?;
        }
        // Some milliseconds of a slow port: no queue is to overflow.
        let until = switch.line.now() + Duration::from_us(2_000);
        switch.line.wait(until, |_| false)?;
    }
    let wanted = (FLOWS * EACH) as usize;
    let until = switch.line.now() + switch.file.tolerance.patience;
    switch.line.wait(until, |seen| seen.len() - mark >= wanted)?;
    let mut came = Came::new();
    for seen in &switch.line.seen[mark..] {
        let Some(packet) = Packet::parse(&seen.frame.octets).ok().flatten() else { continue };
        let NetworkHeaders::Ipv4(_, _, udp) = packet.network else { continue };
        let flow = u32::from(udp.source_port.wrapping_sub(0xc000));
        came.entry(flow).or_default().push((seen.port, packet.transport.bth.psn.get()));
    }
    Ok(came)
}

/// That no flow has a frame behind a later one, or twice. Returns how many frames came.
fn ordered(came: &Came) -> Check<usize> {
    for (flow, frames) in came {
        let wrong = frames.windows(2).find(|pair| pair[1].1 <= pair[0].1);
        if let Some(pair) = wrong {
            return Err(Fault::fail(format!(
                "flow {flow}: frame {} comes behind {}",
                pair[1].1, pair[0].1
            )));
        }
    }
    Ok(came.values().map(Vec::len).sum())
}

fn flows(switch: &mut Switch<'_>) -> Check {
    let (_, to) = switch.pair()?;
    let came = all_flows(switch, to)?;
    let strays = came.values().flatten().filter(|(port, _)| *port != 2).count();
    let count = ordered(&came)?;
    must!(strays == 0, "{strays} frames leave by another port");
    match count == (FLOWS * EACH) as usize {
        true => Ok(format!("{count} frames of {FLOWS} flows, each flow in order, none twice")),
        false => {
            Err(Fault::unclear(format!("{count} of {} frames came, all in order", FLOWS * EACH)))
        }
    }
}

/// The two ports of the group.
fn members(switch: &Switch<'_>) -> Check<[u8; 2]> {
    let first = switch.file.queue.lag_port;
    let first = first.ok_or_else(|| Fault::absent("the DUT file states no lag_port"))?;
    Ok([first, first + 1])
}

/// Sends all flows to a station behind the group.
fn through_group(switch: &mut Switch<'_>) -> Check<(Came, [u8; 2])> {
    let members = members(switch)?;
    let (a, to) = (switch.station(1), switch.station(2));
    let broadcast = switch.short(MacAddress::BROADCAST, a);
    switch.copies(1, &broadcast, switch.receivers())?;
    let shown = switch.short(a, to);
    switch.copies(members[0], &shown, 1)?;
    let came = all_flows(switch, to)?;
    let strays = came.values().flatten().filter(|(port, _)| !members.contains(port)).count();
    must!(strays == 0, "{strays} frames leave by a port outside the group");
    Ok((came, members))
}

fn one_member(switch: &mut Switch<'_>) -> Check {
    let (came, _) = through_group(switch)?;
    let count = ordered(&came)?;
    for (flow, frames) in &came {
        let ports: BTreeSet<u8> = frames.iter().map(|(port, _)| *port).collect();
        must!(ports.len() == 1, "flow {flow} leaves by ports {ports:?}");
    }
    match count == (FLOWS * EACH) as usize {
        true => Ok(format!("{count} frames of {FLOWS} flows, each by one port and in order")),
        false => {
            Err(Fault::unclear(format!("{count} of {} frames came, all in order", FLOWS * EACH)))
        }
    }
}

fn both_members(switch: &mut Switch<'_>) -> Check {
    let (came, members) = through_group(switch)?;
    let counts = members.map(|member| {
        came.values()
            .filter(|frames| frames.first().is_some_and(|(port, _)| *port == member))
            .count()
    });
    let text = format!(
        "{} flows leave by port {} and {} by port {}",
        counts[0], members[0], counts[1], members[1]
    );
    match counts.contains(&0) {
        // The standard leaves the distribution to the device.
        true => Err(Fault::deviation(text)),
        false => Ok(text),
    }
}

fn one_copy(switch: &mut Switch<'_>) -> Check {
    let members = members(switch)?;
    for number in 0..16 {
        let frame = switch.short(MacAddress::BROADCAST, switch.station(10 + number));
        let came = switch.copies(1, &frame, switch.receivers())?;
        let copies = came.iter().filter(|(port, _)| members.contains(port)).count();
        must!(copies == 1, "a broadcast leaves the group {copies} times");
    }
    Ok("each of 16 broadcasts leaves by one port of the group".to_owned())
}

fn none_back(switch: &mut Switch<'_>) -> Check {
    let members = members(switch)?;
    for (number, member) in (0..).zip(members) {
        let frame = switch.short(MacAddress::BROADCAST, switch.station(10 + number));
        let came = switch.copies(member, &frame, 1)?;
        let back = came.iter().filter(|(port, _)| members.contains(port)).count();
        must!(back == 0, "a broadcast of the group goes back to it");
    }
    Ok("broadcasts that come by the group do not leave by it".to_owned())
}
