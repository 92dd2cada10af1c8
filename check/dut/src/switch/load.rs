//! QUE: marks with a probability, drops in place of marks, and weights that change while frames wait.

use super::queueing::{
    SIZE, backlogged_within, burst, fair, fill, is_held, is_marked, parsed, threshold_frames,
    waiting,
};
use super::{Scripts, Switch};
use crate::file::When;
use crate::verdict::{Check, Fault, must};
use proto::ids::Ecn;
use proto::units::{Bytes, Instant};

pub(super) const SCRIPTS: Scripts =
    &[("QUE-08", probability), ("QUE-09", drops), ("QUE-10", reweighed)];

/// Frames of which the share that is marked is known within 1 %: its standard error is at most 0.16 %.
const SAMPLE: usize = 100_000;
/// Parts of the curve that are named one by one.
const PARTS: usize = 4;

/// A probability that rises in proportion between two lengths of the queue, and is 1 above.
struct Curve {
    from: f64,
    to: f64,
    top: f64,
}

impl Curve {
    fn of(switch: &Switch<'_>) -> Check<Curve> {
        let queue = &switch.file.queue;
        let (Some(from), Some(to), Some(top)) = (queue.red_from, queue.red_to, queue.red_top)
        else {
            return Err(Fault::absent("the DUT file states no red_from, red_to and red_top"));
        };
        must!(from < to, "red_from is not below red_to");
        let frames = |octets: Bytes| octets.get() as f64 / SIZE as f64;
        Ok(Curve { from: frames(from), to: frames(to), top: top.0 as f64 / 1e6 })
    }

    /// Where `frames` wait.
    fn at(&self, frames: f64) -> f64 {
        let part = (frames - self.from) / (self.to - self.from);
        if part > 1.0 { 1.0 } else { part.max(0.0) * self.top }
    }
}

/// Bursts up to the end of the curve, until the sample is complete. Devices decide when a frame enters or when it leaves, and
/// count it or not: its depth is the mean of both counts, in the order that fits better.
fn probability(switch: &mut Switch<'_>) -> Check {
    let curve = Curve::of(switch)?;
    let port = switch.file.queue.mark_port;
    // A device without hooks has its curve all the time.
    let has_hooks = switch.file.hooks.iter().any(|hook| hook.when == When::Red);
    let _changed = has_hooks.then(|| switch.change(When::Red)).transpose()?;
    let depths = curve.to as usize;
    let kinds = vec![(switch.file.queue.mark_dscp, Ecn::Capable0); depths];
    let is_held = is_held(switch, port);
    let mut entered = vec![(0_usize, 0_usize); depths];
    let mut total = 0;
    while total < SAMPLE {
        switch.forget();
        let (sent, came) = burst(switch, &[1], port, &kinds)?;
        must!(came.len() == kinds.len(), "{} of {} frames with ECT come", came.len(), kinds.len());
        for one in &came {
            let depth = if is_held { one.number } else { waiting(&sent, &came, one.number) };
            let (frames, marks) = &mut entered[depth as usize];
            *frames += 1;
            *marks += usize::from(is_marked(one));
        }
        total += came.len();
    }
    let left: Vec<_> = entered.iter().rev().copied().collect();
    let found = [&entered, &left].map(|counts| Deviations::of(&curve, counts));
    let [enters, leaves] = found;
    let (what, found) = match leaves.worst() < enters.worst() && is_held {
        true => ("leave", leaves),
        false => ("enter", enters),
    };
    let Deviations { is, wanted, parts } = &found;
    let text = format!(
        "{is:.2} % of {total} frames are marked, {wanted:.2} % by the curve; by quarters of the queue that they {what}: {}",
        parts.map(|(is, wanted)| format!("{is:.1} of {wanted:.1} %")).join(", ")
    );
    must!((is - wanted).abs() <= 1.0 && found.worst() <= 2.0, "{text}");
    Ok(text)
}

/// Shares that are marked and that should be, in percent: of all, and of quarters of the queue.
struct Deviations {
    is: f64,
    wanted: f64,
    parts: [(f64, f64); PARTS],
}

impl Deviations {
    /// `counts` has frames and marks by depth.
    fn of(curve: &Curve, counts: &[(usize, usize)]) -> Deviations {
        let share = |counts: &[(usize, usize)], first: usize| {
            let frames: usize = counts.iter().map(|(frames, _)| frames).sum();
            let marks: usize = counts.iter().map(|(_, marks)| marks).sum();
            let wanted: f64 = (first..)
                .zip(counts)
                .map(|(depth, (frames, _))| *frames as f64 * curve.at(depth as f64 + 0.5))
                .sum();
            let percent = 100.0 / frames.max(1) as f64;
            (marks as f64 * percent, wanted * percent)
        };
        let (is, wanted) = share(counts, 0);
        let bound = |part: usize| part * counts.len() / PARTS;
        let part = |part: usize| share(&counts[bound(part)..bound(part + 1)], bound(part));
        Deviations { is, wanted, parts: std::array::from_fn(part) }
    }

    /// The largest difference of a quarter.
    fn worst(&self) -> f64 {
        let differences = self.parts.iter().map(|(is, wanted)| (is - wanted).abs());
        differences.fold(0.0, f64::max)
    }
}

/// Frames with ECT and without in turn: above the threshold the queue marks the ones and drops the others.
fn drops(switch: &mut Switch<'_>) -> Check {
    let limit = threshold_frames(switch)?;
    let dscp = switch.file.queue.mark_dscp;
    let kinds: Vec<(u8, Ecn)> = (0..limit * 3)
        .map(|n| (dscp, if n % 2 == 0 { Ecn::Capable0 } else { Ecn::NotCapable }))
        .collect();
    let (_, came) = burst(switch, &[1], switch.file.queue.mark_port, &kinds)?;
    let capable: Vec<_> = came.iter().filter(|one| one.number % 2 == 0).collect();
    let wanted = kinds.len().div_ceil(2);
    must!(capable.len() == wanted, "{} of {wanted} frames with ECT come", capable.len());
    let first_mark = capable.iter().find(|one| is_marked(one)).map(|one| one.number);
    let first_mark = first_mark.ok_or_else(|| Fault::fail("no frame with ECT is marked"))?;
    let others: Vec<u32> =
        came.iter().map(|one| one.number).filter(|number| number % 2 == 1).collect();
    let first_drop = (1..limit * 3).step_by(2).find(|number| !others.contains(number));
    let first_drop = first_drop.ok_or_else(|| Fault::fail("no frame without ECT is dropped"))?;
    let dropped = kinds.len() - wanted - others.len();
    let text = format!(
        "frame {first_mark} is the first with a mark, frame {first_drop} the first that is dropped; {dropped} of {} without ECT are dropped",
        kinds.len() - wanted
    );
    // The queue may lie at the threshold for a frame or two.
    must!(first_mark.abs_diff(first_drop) <= 4, "{text}");
    Ok(text)
}

/// Weights change while frames of all classes wait: behind the change they leave by the new weights, and none is lost.
fn reweighed(switch: &mut Switch<'_>) -> Check {
    let before = parsed(switch.file.queue.shares.as_deref())?;
    let after = parsed(switch.file.queue.reweighed.as_deref())?;
    let classes: Vec<u8> = before.iter().map(|(dscp, _)| *dscp).collect();
    let names = |weights: &[(u8, u64)]| weights.iter().map(|(dscp, _)| *dscp).collect::<Vec<_>>();
    must!(names(&after) == classes, "reweighed names other classes than shares");
    let port = switch.file.queue.share_port;
    // A port that nothing holds goes on while the hooks run.
    let each = if is_held(switch, port) { 150 } else { 400 };
    let kinds: Vec<(u8, Ecn)> =
        (0..classes.len() * each).map(|n| (classes[n % classes.len()], Ecn::Capable0)).collect();
    let inputs = [if port == 1 { 2 } else { 1 }];
    let load = fill(switch, &inputs, port, &kinds)?;
    // Some have left while the queue was filled.
    let so_far = load.drain(switch, 1)?.len();
    load.drain(switch, so_far + 120)?;
    let began = switch.line.now();
    load.hold(switch)?;
    let _changed = switch.change(When::Reweigh)?;
    // What has left meanwhile is read first, and what is on the way.
    let settled = switch.line.now() + switch.quiet();
    switch.line.wait(settled, |_| false)?;
    let ended = switch.line.now();
    let came = load.drain(switch, kinds.len())?;
    must!(came.len() == kinds.len(), "{} of {} frames come", came.len(), kinds.len());
    let filled = load.sent.last().copied().unwrap_or(Instant::ZERO);
    let shares =
        |within: &dyn Fn(Instant) -> bool| backlogged_within(kinds.len(), &came, &classes, within);
    let first = fair(&before, &shares(&|at| at > filled && at <= began))
        .map_err(|fault| Fault { observed: format!("before: {}", fault.observed), ..fault })?;
    let second = fair(&after, &shares(&|at| at > ended))
        .map_err(|fault| Fault { observed: format!("after: {}", fault.observed), ..fault })?;
    Ok(format!("before: {first}; after: {second}"))
}
