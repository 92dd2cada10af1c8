//! Drives a switch from a program: frames go in by a port, and come out with the instant at which their last bit leaves.

use bytes::BytesMut;
use proto::device::{Departure, Device};
use proto::frame::{Frame, FrameKind};
use proto::ids::{MacAddress, PortNumber};
use proto::units::{Duration, Instant};
use proto::wire::ethernet::plan;
use scenario::{Scenario, render};
use switchd::switch::Switch;

const STAR: &str = r#"
schema = 1
name   = "star"
run    = { duration = "1 ms" }
scheme = { kind = "none" }

[fabric]
technology = "ethernet"
shape  = "star"
hosts  = 3
link   = { rate = "10 Gbps", delay = "1 us", pause = "pfc" }
switch = { memory = "shared-pool", headroom = "20 KB" }
"#;

/// A frame of 64 octets with an experimental EtherType, without FCS, as a network card hands it over.
fn frame(to: MacAddress, from: MacAddress) -> Frame {
    let octets = [&to.octets()[..], &from.octets(), &[0x88, 0xb5], &[0; 46]].concat();
    Frame::unchecked(FrameKind::Ethernet, BytesMut::from(&octets[..]))
}

fn main() {
    let scenario = Scenario::parse(STAR, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let nodes = &render::render(&scenario).fabric.wiring.nodes;
    let node = nodes.iter().position(|node| node.name == "s0").expect("a star has a switch s0");
    let mut switch = Switch::new(render::switch(&scenario, node)).expect("validation accepted it");
    let station = |node| plan::mac(render::nic(&scenario, node).lid);
    for (us, port, to, from) in [(1, 0, 1, 0), (1, 2, 1, 2), (5, 1, 0, 1)] {
        let now = Instant::ZERO + Duration::from_us(us);
        println!("{us} us: from h{from} to h{to}, in by port {}", port + 1);
        let frame = frame(station(to), station(from));
        switch.handle_frame(PortNumber::from_index(port), frame, now, now);
        run(&mut switch, now, now + Duration::from_us(1));
    }
}

/// Does what a driver does from `now` until `end`: drains departures, and calls the switch when it asks to be woken.
fn run(switch: &mut Switch, mut now: Instant, end: Instant) {
    while now <= end {
        while let Some(Departure { port, frame, at }) = switch.poll_transmit(now) {
            let ns = at.since(Instant::ZERO).as_ps() as f64 / 1e3;
            println!("  out by port {port}: {} octets, over at {ns} ns", frame.octets.len());
        }
        while let Some(event) = switch.poll_event() {
            println!("  {event:?}");
        }
        now = switch.poll_timeout().unwrap_or(Instant::NEVER);
        switch.handle_timeout(now.min(end));
    }
}
