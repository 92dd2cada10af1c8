//! IBFC-13, FID-01, FID-04 and half of FID-13 live: an orderly incast, with captures of its frames.

use crate::prelude::*;

/// How long the incast lasts, and how long it may take to drain. Units: seconds.
const INCAST: (u64, u64) = (30, 1);
const SOURCES: usize = 3;

/// Full frames by RC without end.
pub(super) const INCAST_KEYS: &str =
    "arrivals = \"backlog\"\nsize = \"2048 B\"\ntransport = \"rc\"";

/// Three adapters at full rate to one port, two captures of the frames there.
static RUN: Shared<Fabric> = Shared::new(incast);

fn incast(on: Level) -> Result<Fabric> {
    let (length, drain) = INCAST;
    let keys = format!("{INCAST_KEYS}\nstop = \"{length} s\"");
    let rest = traffic("incast", "h[1-3]", "h4", &keys)
        + &format!(
            "[[measure]]\nname = \"egress\"\nof = \"throughput\"\nat = \"h4:rx\"\nfrom = \"1 s\"\n\
         to = \"{length} s\"\nreduce = \"mean\"\nper = \"line\"\n"
        );
    let text = Star {
        nics: 4,
        duration: &format!("{} s", length + drain),
        run: "capture = [\"s0:4\", \"h4:1\"]\nsnaplen = \"64 B\"",
        rest: &rest,
        ..Star::PROFILE
    }
    .text();
    Fabric::run(on, &text, 1)
}

/// Sequence numbers of the incast's data as they reached h4, by source; cut frames have their headers.
fn arrivals(fabric: &Fabric) -> Result<BTreeMap<u16, Vec<u32>>> {
    let mut by_source: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for frame in fabric.captured("h4:1", Direction::Rx)? {
        let octets = &frame.frame.octets;
        // A link packet is shorter; an acknowledgement never goes this way.
        if octets.len() < 20 {
            continue;
        }
        let source = u16::from_be_bytes([octets[6], octets[7]]);
        let psn = u32::from_be_bytes([0, octets[17], octets[18], octets[19]]);
        by_source.entry(source).or_default().push(psn);
    }
    Ok(by_source)
}

/// IBFC-13.
pub fn incast_without_loss(on: Level) -> Finding {
    let fabric = RUN.on(on)?;
    same("frames dropped", fabric.dropped(), 0)?;
    same("sources with arrivals", arrivals(&fabric)?.len(), SOURCES)?;
    let frames = in_order(&fabric)?;
    let busy = fabric.measure("egress")?;
    ensure!(busy >= 0.97, "the port was busy for {busy:.3} of the time");
    Ok(format!("{frames} frames, each once and in order, 0 dropped, port {busy:.3} busy"))
}

/// Every frame of every source once and in order; how many.
fn in_order(fabric: &Fabric) -> Result<usize> {
    let mut frames = 0;
    for (source, numbers) in arrivals(fabric)? {
        let first = numbers.first().copied().unwrap_or(0);
        let step = numbers.iter().zip(first..).find(|(psn, due)| *psn != due);
        if let Some((psn, due)) = step {
            bail!("LID {source}: {psn} arrived where {due} was due");
        }
        frames += numbers.len();
    }
    Ok(frames)
}

/// FID-04.
pub fn order(on: Level) -> Finding {
    if on == Level::Engine {
        return super::order::a_million_frames_of_a_flow_arrive_once_and_in_order();
    }
    let fabric = RUN.on(on)?;
    let frames = in_order(&fabric)?;
    let reading = fabric.reading("h4")?;
    let reordered: u64 = reading.receptions.iter().map(|flow| flow.reordered).sum();
    same("frames counted as reordered", reordered, 0)?;
    Ok(format!("{frames} frames of 3 flows in {} s, none twice, none out of order", INCAST.0))
}

/// FID-01.
pub fn conservation(on: Level) -> Finding {
    if on == Level::Engine {
        return super::accounts::every_frame_is_sent_dropped_or_kept_at_every_port();
    }
    let fabric = RUN.on(on)?;
    let sum = &fabric.experiment.result.conservation;
    ensure!(sum.closes(), "{sum:?} does not close");
    same("frames standing anywhere at the end", sum.buffered, 0)?;
    let switch = |of: fn(&LaneCounters) -> u64| {
        (1..=4).map(|port| fabric.totals("s0", port).map(|sum| of(&sum))).sum::<Result<u64, _>>()
    };
    let (came, left) = (switch(|sum| sum.rx_frames)?, switch(|sum| sum.tx_frames)?);
    same("data frames that left s0", left, came)?;
    for port in 1..=4 {
        let (near, far) = (fabric.totals("s0", port)?, fabric.totals(&format!("h{port}"), 1)?);
        same(format!("data received from s0:{port}"), far.rx_frames, near.tx_frames)?;
        same(format!("data received at s0:{port}"), near.rx_frames, far.tx_frames)?;
    }
    same("frames lost by the cables", fabric.experiment.result.fidelity.transport_lost, 0)?;
    Ok(format!("injected {} = delivered; s0: {came} in, {left} out; 4 links agree", sum.injected))
}

/// FID-13, the faithful half: at full load every frame of a port is in the capture, once.
///
/// # Errors
/// If a count, a length or a time stamp is not as it must be.
pub fn capture_of_everything(on: Level) -> Finding {
    let fabric = RUN.on(on)?;
    let statistics =
        fabric.experiment.outcome.recordings.iter().filter_map(|one| one.capture.as_ref());
    let dropped: u64 = statistics.flat_map(|one| &one.interfaces).map(|port| port.dropped).sum();
    same("frames that the capture dropped", dropped, 0)?;
    let mut frames = 0;
    for (node, port, way) in [("s0", 4, Direction::Tx), ("h4", 1, Direction::Rx)] {
        let all = fabric.captured(&format!("{node}:{port}"), way)?;
        let counted = fabric.totals(node, port)?;
        let (data, other) = match way {
            Direction::Tx => (counted.tx_frames, counted.ctl_tx),
            Direction::Rx => (counted.rx_frames, counted.ctl_rx),
        };
        same(format!("frames captured at {node}:{port}"), all.len() as u64, data + other)?;
        let whole = all.iter().filter(|frame| frame.wire_size == 2074).count() as u64;
        same(format!("of which full frames at {node}:{port}"), whole, data)?;
        let ascending = all.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
        ensure!(ascending, "time stamps of {node}:{port} run back");
        frames += all.len();
    }
    Ok(format!("{frames} frames at full load: as many as counted, original lengths, in time order"))
}
