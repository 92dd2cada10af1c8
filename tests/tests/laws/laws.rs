//! The laws: what holds in each run, whatever the scenario.

use crate::run::{Conditions, Ran, link, run};
use crate::watch::{FEEDBACK, Violation};
use proto::counters::DropReason;
use proto::link::{FlowControlConfig, PauseMode};
use scenario::Scenario;

/// Steps of all devices together in one run.
const STEPS_MAX: u64 = 20_000;

/// Runs `scenario` as often as the laws need; which further runs it takes depends on `seed`.
///
/// # Errors
/// The first law that it breaks.
pub fn check(scenario: &Scenario, seed: u64) -> Result<(), Violation> {
    let twice = seed.is_multiple_of(16);
    // Threads wait for each other in each window, which takes longer than the windows of small fabrics.
    let steps_max = if twice { STEPS_MAX / 5 } else { STEPS_MAX };
    let once = Conditions { threads: 1, pokes: true, steps_max };
    let ran = one(scenario, once)?;
    within(scenario, &ran)?;
    if twice {
        let twin = one(scenario, Conditions { threads: 2, pokes: false, ..once })?;
        same(&ran, &twin)?;
    }
    Ok(())
}

fn one(scenario: &Scenario, conditions: Conditions) -> Result<Ran, Violation> {
    run(scenario, conditions).map_err(|what| Violation { law: "nothing panics", what })
}

/// The laws of one run.
fn within(scenario: &Scenario, ran: &Ran) -> Result<(), Violation> {
    let holds = conditions(scenario, ran);
    let all = ran.reports.iter().flat_map(|report| &report.violations);
    if let Some(violation) = all.clone().find(|v| v.law != FEEDBACK || holds.no_lossy_data) {
        return Err(violation.clone());
    }
    if ran.is_cut {
        return Ok(());
    }
    if !ran.account.closes() {
        let account = &ran.account;
        let dropped: u64 = account.dropped.values().sum();
        let accounted = account.delivered + account.buffered + dropped;
        let reasons = account.dropped.iter().filter(|(_, n)| **n > 0);
        let what = format!(
            "{} frames sent, {accounted} accounted for: {} delivered, {} under way, dropped {:?}",
            account.injected,
            account.delivered,
            account.buffered,
            reasons.collect::<Vec<_>>()
        );
        return Err(Violation { law: "each frame is accounted for", what });
    }
    line_carries(ran)?;
    if holds.lossless { nothing_lost(ran) } else { Ok(()) }
}

/// What a scenario rules out.
struct Holds {
    /// Lossless lanes lose nothing.
    lossless: bool,
    /// No data of a lossy lane takes the room of feedback.
    no_lossy_data: bool,
}

fn conditions(scenario: &Scenario, ran: &Ran) -> Holds {
    let fabric = &scenario.fabric;
    let faults = !scenario.impairments.is_empty() || !scenario.outages.is_empty();
    let afflicted = !fabric.afflicted.drains.is_empty() || !fabric.afflicted.storms.is_empty();
    // A watchdog gives up lossless frames, and a neighbour that does not obey sends into a full buffer.
    let obeys = match &fabric.link.control {
        FlowControlConfig::Credit(_) => true,
        FlowControlConfig::Pause(pause) => {
            pause.mode != PauseMode::None && pause.lossless & !pause.obeyed == 0
        }
    };
    let watched = fabric.switch.watchdog.is_some();
    let lossless = !faults && !afflicted && obeys && !watched;
    let lanes = ran.lab.fabric.lanes.iter();
    let mut all_lossless = lanes.map(|lane| ran.lab.fabric.is_lossless(*lane));
    let pauses =
        matches!(&fabric.link.control, FlowControlConfig::Pause(p) if p.mode != PauseMode::None);
    Holds { lossless, no_lossy_data: lossless && pauses && all_lossless.all(|lossless| lossless) }
}

/// No port received more than its line carries in the time that passed.
fn line_carries(ran: &Ran) -> Result<(), Violation> {
    for (node, reading) in ran.readings.iter().enumerate() {
        for (port, counters) in reading.ports.iter().enumerate() {
            let rate = link(&ran.lab, node, port).rate;
            let received: u64 = counters.lanes.iter().map(|lane| lane.counters.rx_bytes).sum();
            let time = u128::from(ran.tally.ended.as_ps());
            let carried = u128::from(rate.get()) * time / 8_000_000_000_000;
            if u128::from(received) > carried + 1 {
                let name = ran.lab.fabric.node_name(node);
                let what = format!(
                    "{name}:{} received {received} octets of data in {time} ps at {rate}",
                    port + 1
                );
                return Err(Violation { law: "goodput is not above the line's rate", what });
            }
        }
    }
    Ok(())
}

/// No lossless lane lost a frame for want of room.
fn nothing_lost(ran: &Ran) -> Result<(), Violation> {
    for (node, reading) in ran.readings.iter().enumerate() {
        for (port, counters) in reading.ports.iter().enumerate() {
            for lane in &counters.lanes {
                let lost = lane.counters.no_room;
                if lost > 0 && ran.lab.fabric.is_lossless(lane.tc) {
                    let of = |reason: &DropReason| counters.drops.get(*reason);
                    let reasons = DropReason::ALL.iter().filter(|r| r.is_want_of_room());
                    let reasons: Vec<String> = reasons
                        .filter(|reason| of(reason) > 0)
                        .map(|reason| format!("{} {}", of(reason), reason.name()))
                        .collect();
                    let name = ran.lab.fabric.node_name(node);
                    let what = format!(
                        "{name}:{} lost {lost} frames of lane {}: {}",
                        port + 1,
                        lane.tc,
                        reasons.join(", ")
                    );
                    return Err(Violation { law: "a lossless lane loses nothing", what });
                }
            }
        }
    }
    Ok(())
}

/// Both runs sent the same octets at the same instants.
fn same(one: &Ran, other: &Ran) -> Result<(), Violation> {
    for (a, b) in one.reports.iter().zip(&other.reports) {
        if a.digest != b.digest && !one.is_cut && !other.is_cut {
            let name = one.lab.fabric.node_name(a.node);
            let what = format!("{name} sends something else on two threads, polled more often");
            return Err(Violation { law: "equal seeds send equal octets", what });
        }
    }
    Ok(())
}
