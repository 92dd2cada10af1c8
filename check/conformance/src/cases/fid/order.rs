//! What arrives of a flow arrives in the order in which it was sent, once.

use crate::prelude::*;
use crate::watched::{Watched, watch};
use emulation::wiring::{End, Wiring};
use proto::frame::FrameClass;

/// Two sources, a lane each, one receiver: they share its line.
fn text(messages: u64, more: &str) -> String {
    let item = |name, from, sl| {
        let keys = "arrivals = \"backlog\"\nsize = \"64 B\"\ntransport = \"uc\"";
        traffic(name, from, "h2", &format!("{keys}\nsl = {sl}\nmessages = {messages}"))
    };
    format!(
        "schema = 1\nname = \"order\"\nrun = {{ seed = 7, duration = \"{} mtu\", backend = \"virtual\" }}\n\
         [fabric]\nshape = \"star\"\nhosts = 3\nlink = {{ rate = \"8 Gbps\", vls = 2 }}\n\
         sl2vl = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n{}{}{more}",
        100 + messages / 10,
        item("first", "h0", 0),
        item("second", "h1", 1)
    )
}

/// What a receiver has seen of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    frames: u64,
    /// PSN expected next.
    next: u32,
    /// Frames older than one seen before, apart from copies.
    reordered: u64,
    /// Frames with the PSN of the one before.
    copies: u64,
    /// PSNs passed over.
    missing: u64,
}

impl Order {
    fn see(&mut self, psn: u32) {
        self.frames += 1;
        if psn + 1 == self.next {
            self.copies += 1;
        } else if psn < self.next {
            self.reordered += 1;
        } else {
            self.missing += u64::from(psn - self.next);
            self.next = psn + 1;
        }
    }
}

/// By source LID and service level.
type Flows = BTreeMap<(u64, u8), Order>;

fn run(messages: u64, more: &str) -> Result<(Flows, Watched)> {
    let mut flows = Flows::new();
    let at_receiver = |wiring: &Wiring, end: End| wiring.nodes[end.node].name == "h2";
    let look = |_: End, direction: Direction, frame: &Frame| {
        let Ok(headers) = classify(frame.kind, &frame.octets) else { return };
        if direction == Direction::Rx && headers.class == FrameClass::Data {
            let flow = (headers.source.number(), headers.level.get());
            flows.entry(flow).or_default().see(headers.psn);
        }
    };
    let run = watch(&text(messages, more), at_receiver, look)?;
    same("flows", flows.len(), 2)?;
    Ok((flows, run))
}

pub fn a_million_frames_of_a_flow_arrive_once_and_in_order() -> Finding {
    const FRAMES: u64 = 1_000_000;
    let (flows, run_over) = run(FRAMES, "")?;
    let whole = Order { frames: FRAMES, next: FRAMES as u32, ..Order::default() };
    for ((source, level), order) in flows {
        same(format!("what arrived from LID {source} on SL {level}"), order, whole)?;
    }
    let receptions = &run_over.readings[2].receptions;
    let refused: u64 = receptions.iter().map(|flow| flow.reordered).sum();
    let delivered: Vec<u64> = receptions.iter().map(|flow| flow.messages).collect();
    same("frames that the receiver calls out of order", refused, 0)?;
    same("messages delivered", delivered, [FRAMES; 2])?;
    let (seen, injected) = what_was_injected_is_seen()?;
    Ok(format!("2 flows of {FRAMES} frames, whole; {seen} of {injected} injected copies were seen"))
}

/// The same eyes on a cable that copies and loses frames.
fn what_was_injected_is_seen() -> Result<(u64, u64)> {
    let impairment = |from: &str, action: &str| {
        format!(
            "[[impairment]]\nfrom = \"{from}\"\nframes = \"data\"\naction = \"{action}\"\nchance = 0.01\n"
        )
    };
    let bad = impairment("h0:1", "duplicate") + &impairment("h1:1", "lose");
    let (flows, run) = run(20_000, &bad)?;
    let sum = |part: fn(&Order) -> u64| flows.values().map(part).sum::<u64>();
    let injected = run.tally.injected;
    let (copies, lost) = (injected.duplicated.end_to_end, injected.lost.end_to_end);
    ensure!(copies > 0 && lost > 0, "nothing was injected: {injected:?}");
    same("copies seen", sum(|order| order.copies), copies)?;
    same("gaps seen", sum(|order| order.missing), lost)?;
    same("frames seen out of order", sum(|order| order.reordered), 0)?;
    Ok((sum(|order| order.copies), copies))
}
