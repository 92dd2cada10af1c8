//! QOS-11: every adapter to every other, on every priority: all of them lossless in little memory, and on
//! the virtual clock all lossy in enough.

use crate::ethernet::*;
use crate::prelude::*;

static LOSSLESS_RUN: Shared<Fabric> = Shared::new(|on| mesh(on, true));
static LOSSY_RUN: Shared<Fabric> = Shared::new(|on| mesh(on, false));

/// Octets of each message: a full frame and a short one.
const SIZE: u64 = 2_148;

/// Adapters, and messages of each to each other on each priority.
fn scale(on: Level) -> (u8, u64) {
    if on == Level::Live { (4, 8) } else { (6, 6) }
}

fn mesh(on: Level, lossless: bool) -> Result<Fabric> {
    let (nics, messages) = scale(on);
    // A NIC reads XOFF when its process wakes: headroom for 25 ms of that.
    let mut rest = if lossless { memory((4, 16), "", "") } else { roomy("") };
    rest += "nic = { dscp = [0, 8, 16, 24, 32, 40, 48, 56, 0, 0, 0, 0, 0, 0, 0, 0] }\n";
    for (from, to) in pairs(nics) {
        for priority in 0..8 {
            let service = if priority < 4 { "rc" } else { "uc" };
            let keys = format!(
                "arrivals = \"backlog\"\nsize = \"{SIZE} B\"\nmessages = {messages}\n\
                 sl = {priority}\ntransport = \"{service}\""
            );
            let ends = [from, to].map(|number| format!("h{number}"));
            rest += &traffic(&format!("h{from}-h{to}-{priority}"), &ends[0], &ends[1], &keys);
        }
    }
    let (technology, link) = match lossless {
        true => (STAR.technology, "lossless = [0, 1, 2, 3, 4, 5, 6, 7]"),
        false => ((STAR.technology.0, "pause = \"none\""), ""),
    };
    let duration = if on == Level::Live { "1500 ms" } else { "4 s" };
    let star = Star { nics, duration, technology, link, rest: &rest, ..STAR };
    Fabric::run(on, &star.text(), 1)
}

fn pairs(nics: u8) -> impl Iterator<Item = (u8, u8)> {
    let pairs = (1..=nics).flat_map(move |from| (1..=nics).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to)
}

/// All was delivered, and both ends of every cable agree; the pauses that the switch has sent.
fn delivered(on: Level, fabric: &Fabric) -> Result<u64> {
    let (nics, messages) = scale(on);
    let sum = &fabric.experiment.result.conservation;
    ensure!(sum.closes(), "{sum:?} does not close");
    same("frames dropped", fabric.dropped(), 0)?;
    same("frames standing anywhere at the end", sum.buffered, 0)?;
    let mut pauses = 0;
    for host in 1..=nics {
        let name = format!("h{host}");
        let reading = fabric.reading(&name)?;
        let flows = reading.receptions.len();
        same(format!("flows received by {name}"), flows, usize::from(nics - 1) * 8)?;
        for flow in &reading.receptions {
            let what = format!("{name}, from {} class {}", flow.flow.source, flow.flow.class);
            same(format!("{what}: messages"), flow.messages, messages)?;
            same(format!("{what}: octets"), flow.delivered_bytes, messages * SIZE)?;
            same(format!("{what}: out of order"), flow.reordered, 0)?;
        }
        let (near, far) = (fabric.port(&name, 1)?, fabric.port("s0", host.into())?);
        for (priority, (near, far)) in near.lanes.iter().zip(&far.lanes).enumerate() {
            let (near, far) = (near.counters, far.counters);
            let what = |what: &str| format!("{what} of {name}, priority {priority}");
            same(what("frames out"), far.rx_frames, near.tx_frames)?;
            same(what("octets out"), far.rx_bytes, near.tx_bytes)?;
            same(what("frames in"), near.rx_frames, far.tx_frames)?;
            same(what("octets in"), near.rx_bytes, far.tx_bytes)?;
            ensure!(near.tx_frames > 0, "priority {priority} was not used");
        }
        // Live, acknowledgements that the switch passes on count as well: pauses depend on the host.
        pauses += match on {
            Level::Live => fabric.totals("s0", host.into())?.ctl_tx,
            _ => fabric.named("s0", host.into(), "tx_pfc")?,
        };
    }
    Ok(pauses)
}

/// QOS-11.
pub fn full_mesh(on: Level) -> Finding {
    let pauses = delivered(on, &*LOSSLESS_RUN.on(on)?)?;
    ensure!(pauses > 0, "nothing was ever paused: the case proves little");
    if on == Level::Engine {
        same("PFC frames where all is lossy", delivered(on, &*LOSSY_RUN.on(on)?)?, 0)?;
    }
    let (nics, messages) = scale(on);
    let flows = pairs(nics).count() * 8;
    Ok(format!("{flows} flows of {messages} messages; both ends agree; {pauses} control frames"))
}
