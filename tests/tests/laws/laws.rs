//! The laws: what holds in each run, whatever the scenario.

use crate::accept::Drawn;
use crate::generate::Aim;
use crate::run::{Conditions, Ran, guarded, link, run};
use crate::watch::{FEEDBACK, Violation};
use crate::{text, twins};
use launch::experiment::Experiment;
use launch::substrate;
use proto::counters::{DropReason, FlowReading};
use proto::link::{FlowControlConfig, PauseMode};
use proto::technology::Technology;
use proto::units::{Duration, Instant};
use scenario::Scenario;
use scenario::run::Backend;
use toml::Table;

/// How a twin differs whose payload names other instants.
const SLOWER: &str = "with half the rates and twice the times";

/// Steps of all devices together in one run.
const STEPS_MAX: u64 = 20_000;

/// Checks the scenario of `seed`, which decides what it is run for.
///
/// # Errors
/// The first law that it breaks.
pub fn check(drawn: &Drawn, seed: u64) -> Result<(), Violation> {
    let until = Instant::NEVER;
    let once = Conditions { threads: 1, pokes: true, unit: 1, steps_max: STEPS_MAX, until };
    let scenario = &drawn.scenario;
    match Aim::of(seed) {
        Aim::Exact => exact(drawn, Conditions { steps_max: STEPS_MAX / 2, ..once }),
        Aim::Drained => {
            let ran = one(scenario, Conditions { steps_max: STEPS_MAX * 2, ..once })?;
            within(scenario, &ran)?;
            arrived(scenario, &ran).or_else(|_| {
                // Slow lines, short buffers behind long cables, and late acknowledgements need more time.
                let mut longer = scenario.clone();
                longer.run.duration = longer.run.duration * 16;
                let unlimited = Conditions { steps_max: STEPS_MAX * 64, ..once };
                arrived(&longer, &one(&longer, unlimited)?)
            })
        }
        Aim::Any if seed.is_multiple_of(16) => {
            // Threads wait for each other in each window, which takes longer than the windows of small fabrics.
            let once = Conditions { steps_max: STEPS_MAX / 5, ..once };
            let ran = one(scenario, once)?;
            within(scenario, &ran)?;
            let threads = one(scenario, Conditions { threads: 2, ..once })?;
            same("equal seeds send equal octets", &ran, &threads, "on two threads")?;
            // A poll drops wake-ups that have become void, so without it the same time takes more steps.
            let (steps_max, until) = (once.steps_max * 2, ran.tally.ended);
            let unasked = Conditions { pokes: false, steps_max, until, ..once };
            let unasked = one(scenario, unasked)?;
            same("a poll that sends nothing changes nothing", &ran, &unasked, "polled less often")
        }
        Aim::Any => {
            let ran = one(scenario, once)?;
            within(scenario, &ran)?;
            let is_short = !ran.is_cut && ran.tally.ended == ran.lab.plan.stop;
            if is_short && seed.is_multiple_of(8) { recorded(scenario, &ran) } else { Ok(()) }
        }
    }
}

/// The run as the program makes it, with recorder, measures and verdict.
fn recorded(scenario: &Scenario, ran: &Ran) -> Result<(), Violation> {
    let conditions = launch::experiment::Conditions::new(substrate(Backend::Virtual), "laws");
    let made = guarded(|| Experiment::run(scenario, conditions, &mut |_| {}));
    let panic = |what| Violation { law: "nothing panics", what };
    let made = made.map_err(panic)?.map_err(|error| panic(error.to_string()))?.result;
    if made.conservation == ran.account && made.violations.is_none() {
        return Ok(());
    }
    let (theirs, ours) = (made.conservation, &ran.account);
    let what = format!("with a recorder {theirs:?}, without {ours:?}; {:?}", made.violations);
    Err(Violation { law: "who looks changes nothing", what })
}

/// A scenario without randomness, with times doubled and with other names.
fn exact(drawn: &Drawn, once: Conditions) -> Result<(), Violation> {
    let Drawn { table, scenario } = drawn;
    let ran = one(scenario, once)?;
    within(scenario, &ran)?;
    let reading = |table: &Table| Scenario::parse(&text::print(table), &[]).ok();
    if let Some(slow) = twins::doubled(table).and_then(|table| reading(&table)) {
        let slow = one(&slow, Conditions { unit: 2, ..once })?;
        let law = "half the rates and twice the times double all times";
        same(law, &ran, &slow, SLOWER)?;
    }
    // Names seed random numbers. Another seed shows whether any is drawn.
    let Some(other) = reading(&twins::reseeded(table)) else { return Ok(()) };
    let other = one(&other, once)?;
    let is_random = same("", &ran, &other, "").is_err();
    match twins::renamed(table).and_then(|table| reading(&table)) {
        Some(renamed) if !is_random => {
            let renamed = one(&renamed, once)?;
            same("names change no figure", &ran, &renamed, "under another name")
        }
        _ => Ok(()),
    }
}

fn one(scenario: &Scenario, conditions: Conditions) -> Result<Ran, Violation> {
    run(scenario, conditions).map_err(|what| Violation { law: "nothing panics", what })
}

/// How long after the last sender has stopped everything has arrived.
pub fn drain(technology: Technology) -> Duration {
    match technology {
        // The time of a message at the lowest rate that a scheme has by default, or of a buffer on the slowest line.
        Technology::Ethernet => Duration::from_us(60_000),
        // Ports send credits all the time, which would be most of a longer run.
        Technology::Infiniband => Duration::from_us(3_000),
    }
}

/// After senders have stopped, everything arrives, where no frame may be lost.
fn arrived(scenario: &Scenario, ran: &Ran) -> Result<(), Violation> {
    let holds = conditions(scenario, ran);
    let is_whole = !ran.is_cut && ran.tally.ended == ran.lab.plan.stop;
    let last = scenario.traffic.items.iter().map(|item| item.stop).max().unwrap_or_default();
    let is_whole = is_whole && ran.tally.ended >= last + drain(scenario.fabric.technology);
    let is_lossy = ran.account.dropped.values().any(|n| *n > 0);
    // Outputs that wait for each other in a circle may do so for ever, of which validation warns, and a frame that is
    // gone is waited for.
    if !is_whole || !holds.lossless || is_lossy || !ran.lab.waits.is_empty() {
        return Ok(());
    }
    let flows = ran.readings.iter().flat_map(|reading| &reading.flows);
    let open: Vec<String> = flows
        .filter(|flow| flow.messages != flow.completed + flow.withdrawn)
        .map(|flow| {
            let FlowReading { flow, messages, completed, withdrawn, .. } = flow;
            let (from, to) = (flow.source, flow.destination);
            format!(
                "{from} to {to}: {messages} posted, {completed} completed, {withdrawn} withdrawn"
            )
        })
        .collect();
    if ran.account.buffered == 0 && open.is_empty() {
        return Ok(());
    }
    let (buffered, open) = (ran.account.buffered, open.join("; "));
    let what = format!("{buffered} frames are under way after the senders have stopped; {open}");
    Err(Violation { law: "what was sent arrives", what })
}

/// The laws of one run.
fn within(scenario: &Scenario, ran: &Ran) -> Result<(), Violation> {
    let holds = conditions(scenario, ran);
    if let Some(violation) = ran.physics.first() {
        return Err(violation.clone());
    }
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
    // A cable that duplicates or delays hands over more than its line carried.
    if scenario.impairments.is_empty() {
        line_carries(ran)?;
    }
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
    let afflicted = !fabric.afflicted.storms.is_empty();
    // A watchdog gives up lossless frames, and a neighbour that does not obey sends into a full buffer.
    let obeys = match &fabric.link.control {
        FlowControlConfig::Credit(_) => true,
        FlowControlConfig::Pause(pause) => {
            pause.mode != PauseMode::None && pause.lossless & !pause.obeyed == 0
        }
    };
    let watched = fabric.switch.watchdog.is_some();
    // Headroom that not all ports can use at once, or that is short where the pool is full, may lose frames, of which
    // validation warns.
    let short = ["fabric.switch.pool.headroom_pool", "fabric.switch.headroom"];
    let is_short = scenario.warnings.iter().any(|it| short.contains(&it.path.as_str()));
    let lossless = !faults && !afflicted && obeys && !watched && !is_short;
    let lanes = ran.lab.fabric.lanes.iter();
    let mut all_lossless = lanes.map(|lane| ran.lab.fabric.is_lossless(*lane));
    let pauses =
        matches!(&fabric.link.control, FlowControlConfig::Pause(p) if p.mode != PauseMode::None);
    // A message for every frame is more than a reserve holds.
    let floods = scenario.scheme.params.get("p_sample").and_then(toml::Value::as_float);
    let sparse = floods.is_none_or(|share| share < 0.5);
    let no_lossy_data = lossless && pauses && sparse && all_lossless.all(|lossless| lossless);
    Holds { lossless, no_lossy_data }
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

/// Both runs sent the same octets at the same instants; `how` the other run differs.
fn same(law: &'static str, one: &Ran, other: &Ran, how: &str) -> Result<(), Violation> {
    if one.is_cut || other.is_cut {
        return Ok(());
    }
    for (a, b) in one.reports.iter().zip(&other.reports) {
        if a.times != b.times || a.octets != b.octets && how != SLOWER {
            let name = one.lab.fabric.node_name(a.node);
            let part = if a.times == b.times { "other octets" } else { "other frames" };
            let what = format!("{name} sends {part} {how}");
            return Err(Violation { law, what });
        }
    }
    Ok(())
}
