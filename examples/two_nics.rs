//! Two NICs on a virtual clock: a scenario becomes devices, a simulator runs them, and counters say what happened.

use emulation::observer::{Observer, Passage};
use emulation::simulator::Simulator;
use nicd::nic::Nic;
use proto::device::Device;
use proto::events::Direction;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use scenario::{Scenario, render};
use std::ops::ControlFlow;

const PAIR: &str = r#"
schema  = 1
name    = "pair"
run     = { duration = "1 ms" }
scheme  = { kind = "none" }
traffic = [{ name = "stream", from = "a", to = "b", load = 0.5, transport = "rc", size = "4 KiB" }]

[fabric]
technology = "infiniband"
link  = { rate = "8 Gbps", delay = "100 ns" }
nodes = [{ name = "a", kind = "nic" }, { name = "b", kind = "nic" }]
links = [{ a = "a:1", b = "b:1" }]
"#;

/// Counts frames and octets that arrive at device 1.
#[derive(Default)]
struct Arrivals {
    frames: u64,
    octets: usize,
}

impl Observer for Arrivals {
    fn wants_frames(&self, device: usize, _: PortNumber) -> bool {
        device == 1
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        if passage.direction == Direction::Rx {
            self.frames += 1;
            self.octets += frame.octets_len();
        }
    }
}

fn main() {
    let scenario = Scenario::parse(PAIR, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let nic = |node| Nic::new(render::nic(&scenario, node)).expect("validation accepted it");
    let devices: Vec<Box<dyn Device>> = (0..2).map(|node| Box::new(nic(node)) as _).collect();
    let wiring = &render::render(&scenario).fabric.wiring;
    let mut arrivals = Arrivals::default();
    let stop = Instant::ZERO + Duration::from_us(1_000);
    let tally = Simulator::new(wiring, devices, scenario.run.seed)
        .run(stop, &mut arrivals, |_| ControlFlow::Continue(()));
    let (Arrivals { frames, octets }, hops) = (arrivals, tally.frame_hops);
    println!("{frames} frames with {octets} octets came to b in 1 ms; {hops} frame-hops");
}
