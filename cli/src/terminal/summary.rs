//! The result of a run as text: the verdict, a table of measures and expectations, and throughput over time.

use super::sparkline;
use super::table::table;
use emulation::frame_tap::CaptureStatistics;
use emulation::wiring::End;
use launch::experiment::Experiment;
use launch::output;
use proto::events::Direction;
use results::run_directory::result::{ClockPiece, DeadlockLine, HeadroomLine, RunResult};
use results::saturation::Tree;
use results::verdict::{Judgement, Verdict};
use results::wording::{accepted, number, reasons, word, written};
use scenario::measure::{At, Quantity};
use std::collections::BTreeMap;

/// The width of the picture of throughput, in characters.
const PICTURE: usize = 60;
/// The number of congestion trees that are printed.
const TREES: usize = 2;
/// The number of changes of the clock that are printed.
const CHANGES: usize = 6;

/// The whole text of one run.
pub fn text(experiment: &Experiment) -> String {
    let result = &experiment.result;
    let met = result.expectations.iter().filter(|e| e.verdict == Verdict::Pass).count();
    let of = result.expectations.len();
    let (verdict, host) = (word(result.verdict), host(experiment));
    let mut lines =
        vec![format!("{verdict}  {}  {met} of {of} expectations  {host}", result.scenario)];
    lines.extend(measures(experiment).lines().map(|line| format!("  {}", line.trim_end())));
    lines.extend(pictures(experiment));
    lines.extend(trees(result));
    let balance = &result.conservation;
    let dropped = reasons(&balance.dropped);
    let dropped = if dropped.is_empty() { dropped } else { format!(" ({dropped})") };
    lines.push(format!(
        "  frames  {} sent = {} delivered + {} under way + {} dropped{dropped}{}",
        balance.injected,
        balance.delivered,
        balance.buffered,
        balance.dropped.values().sum::<u64>(),
        if balance.closes() { "" } else { "   ✕ DOES NOT CLOSE" },
    ));
    let lost = result.lossless_drops.iter();
    lines.extend(lost.map(|drops| format!("  {}", drops.line(result.fidelity.ok))));
    lines.extend(result.violations.iter().map(|broken| format!("  ✕ {broken}")));
    lines.extend(result.captures.iter().filter_map(capture));
    lines.extend(refused(&result.refused));
    lines.extend(result.deadlocks.iter().map(deadlock));
    lines.extend(headroom_alarm(&result.headroom_alarms));
    lines.extend(result.remarks.iter().map(|remark| format!("  ! {remark}")));
    lines.extend(stretched(result));
    lines.extend(experiment.outcome.reasons.iter().map(|reason| format!("  ◐ {reason}")));
    let is_inconclusive = result.verdict == Verdict::Inconclusive;
    let again = result.fidelity.suggested_dilation.filter(|_| is_inconclusive);
    lines.extend(again.into_iter().flat_map(|by| again_with(result, by)));
    let failed = result.expectations.iter().filter(|e| e.verdict == Verdict::Fail);
    lines.extend(failed.map(|failed| format!("  ✕ {}", failure(experiment, failed))));
    lines.join("\n") + "\n"
}

/// What to do after an inconclusive run, for which a dilation is suggested.
fn again_with(result: &RunResult, dilation: u64) -> Vec<String> {
    if result.cables.contains_key("attached") {
        return vec!["  again on a quieter host: the clock of hosts cannot be slowed".to_owned()];
    }
    vec![
        format!("  again with --dilate {dilation}, which should hold on this host"),
        "  again with --pace exact, which needs no quiet host".to_owned(),
    ]
}

/// Where the clock of a live run was stretched because the host fell behind.
fn stretched(result: &RunResult) -> Option<String> {
    result.pieces.stretched()?;
    let tau_ps = result.tau_ps.max(1);
    let step = |piece: &ClockPiece| format!("{}× at {} τ", piece.dilation, piece.from_ps / tau_ps);
    let changes = result.pieces.0.iter().skip(1);
    let mut steps: Vec<String> = changes.take(CHANGES).map(step).collect();
    let more = result.pieces.0.len() - 1 - steps.len();
    steps.extend((more > 0).then(|| format!("{more} more changes")));
    Some(format!("  stretched  the host fell behind: {}", steps.join(", ")))
}

/// A capture that lacks frames.
fn capture(capture: &CaptureStatistics) -> Option<String> {
    (!capture.is_whole()).then(|| format!("  ✕ capture  {}", account(capture)))
}

/// The file of a capture, and how many frames it holds and lacks.
pub fn account(capture: &CaptureStatistics) -> String {
    let (seen, dropped) = (capture.seen(), capture.dropped());
    let error = capture.error.as_deref().map_or(String::new(), |error| format!(" ({error})"));
    format!("{}: {seen} frames passed, {dropped} of them lost{error}", capture.file.display())
}

/// The largest congestion trees, one line each. Trees of a single output are only in the report.
fn trees(result: &RunResult) -> impl Iterator<Item = String> {
    let trees = result.saturation.trees.iter().filter(|tree| tree.size > 1).take(TREES);
    trees.map(|Tree { size, feeds, root, sources, first_ps, last_ps, .. }| {
        let [first, last] = [first_ps, last_ps].map(|ps| ps / result.tau_ps.max(1));
        format!(
            "  tree    {size} outputs behind {feeds} (root {root}), {sources} sources among them, \
             from {first} to {last} τ"
        )
    })
}

fn deadlock(DeadlockLine { at_ps, over_ps, tc, circle }: &DeadlockLine) -> String {
    let us = |ps: u64| format!("{:.3} us", ps as f64 / 1e6);
    let over = over_ps.map_or("not over".to_owned(), |ps| format!("over at {}", us(ps)));
    format!("  deadlock on lane {tc} at {}, {over}: {}", us(*at_ps), circle.join(" → "))
}

/// The first headroom alarm, and the number of further ones.
fn headroom_alarm(alarms: &[HeadroomLine]) -> Option<String> {
    let [HeadroomLine { at_ps, port, tc, used, headroom }, more @ ..] = alarms else { return None };
    let us = *at_ps as f64 / 1e6;
    let others = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
    Some(format!(
        "  headroom alarm  {port}, priority {tc}: {used} of {headroom} octets used at {us:.3} us{others}"
    ))
}

/// Datagrams that the sockets refused, by reason, if there were any.
fn refused(refused: &BTreeMap<String, u64>) -> Option<String> {
    Some(reasons(refused)).filter(|text| !text.is_empty()).map(|text| format!("  refused {text}"))
}

/// The fidelity of the host, as text.
fn host(experiment: &Experiment) -> String {
    let result = &experiment.result;
    let fidelity = &result.fidelity;
    match result.dilation {
        None => {
            let clock = result.exact_clock().unwrap_or_default();
            format!("{clock}, {:.1} s", experiment.outcome.wall_seconds)
        }
        Some(dilation) => {
            let how = if fidelity.ok { "kept up" } else { "did not keep up" };
            let late = match fidelity.lateness_p99_frames {
                Some(late) if !fidelity.judges_lateness() => {
                    format!(
                        "hosts run at their own pace (late p99 {late:.3} frame times, not judged; "
                    )
                }
                Some(late) => format!("host {how} (late p99 {late:.3} of 0.10 frame times, "),
                None => "ports without a rate, where nothing is late (".to_owned(),
            };
            let (backend, lost) = (&result.backend, fidelity.transport_lost);
            let most = result.pieces.stretched().map(|(_, greatest)| format!(" to {greatest}"));
            format!("{backend}, {dilation}{}× slowed, {late}{lost} lost)", most.unwrap_or_default())
        }
    }
}

fn measures(experiment: &Experiment) -> String {
    let result = &experiment.result;
    let has_theory = result.expectations.iter().any(|judged| judged.theory.is_some());
    let theory = if has_theory { "theory" } else { "" };
    let judged = result.expectations.iter().map(|judged| {
        let sign = match judged.verdict {
            Verdict::Pass => "✓",
            Verdict::Fail => "✕",
            Verdict::Inconclusive => "◐",
        };
        [
            judged.measure.clone(),
            accepted(judged),
            written(judged.value.as_ref()),
            sign.to_owned(),
            judged.theory.map_or(String::new(), |theory| number(Some(theory))),
        ]
    });
    let is_judged = |name: &str| result.expectations.iter().any(|judged| judged.measure == name);
    let others =
        result.measures.iter().filter(|(name, _)| !is_judged(name)).map(|(name, value)| {
            [name.clone(), String::new(), written(value.as_ref()), String::new(), String::new()]
        });
    table(&["measure", "accepted", "value", "", theory], [1, 2, 4], judged.chain(others))
}

fn failure(experiment: &Experiment, judged: &Judgement) -> String {
    let value = match &judged.value {
        Some(value) => format!("{} is {}", judged.measure, written(Some(value))),
        None => {
            let why = experiment.nulls.iter().find(|(name, _)| *name == judged.measure);
            let why = why.map_or("no value", |(_, why)| why.as_str());
            format!("{} has no value ({why})", judged.measure)
        }
    };
    let look =
        place(experiment, &judged.measure).map_or(String::new(), |at| format!("; look at {at}"));
    format!(
        "{value}, accepted is {} (line {}: {}){look}",
        accepted(judged),
        judged.line,
        judged.why
    )
}

/// A port, flow or node of a measure.
fn place(experiment: &Experiment, measure: &str) -> Option<String> {
    let measure = experiment.lab.measures.iter().find(|m| m.name == measure)?;
    let wiring = &experiment.lab.fabric.wiring;
    match &measure.at {
        At::Ports(ports) => ports.first().map(|(end, _)| wiring.end_name(*end)),
        At::Flows(flows) => flows
            .first()
            .map(|(from, to)| format!("{}>{}", wiring.nodes[*from].name, wiring.nodes[*to].name)),
        At::Nodes(nodes) => nodes.first().map(|node| wiring.nodes[*node].name.clone()),
        At::Output(host, _) => experiment.lab.fabric.hosts.get(*host).map(|host| host.name.clone()),
    }
}

/// Throughput over time, one line for each measure of throughput.
fn pictures(experiment: &Experiment) -> impl Iterator<Item = String> {
    let unicode = output::terminal().unicode;
    let measures = experiment.lab.measures.iter();
    measures.filter(|measure| measure.of == Quantity::Throughput).filter_map(move |measure| {
        let At::Ports(ports) = &measure.at else { return None };
        let picture = sparkline::draw(&throughput(experiment, ports), PICTURE, unicode);
        Some(format!("  {:16} {picture}", measure.name))
    })
}

/// Mean throughput of ports, each in its direction, by bin, as a ratio to line rate.
fn throughput(experiment: &Experiment, ports: &[(End, Direction)]) -> Vec<f64> {
    let wanted: BTreeMap<End, Direction> = ports.iter().copied().collect();
    let mut sums: Vec<f64> = Vec::new();
    for recording in &experiment.outcome.recordings {
        let slots = &recording.grid.slots;
        sums.resize(sums.len().max(slots.len()), 0.0);
        for series in &recording.ports {
            let Some(direction) = wanted.get(&series.at) else { continue };
            let Ok(rate) = experiment.lab.fabric.line_rate(series.at) else { continue };
            for (index, slot) in slots.iter().enumerate() {
                let bin = series.bins.get(index as u32);
                let octets = match direction {
                    Direction::Rx => bin.rx_bytes(),
                    Direction::Tx => bin.tx_bytes(),
                } as f64;
                let full = rate.get() as f64 * slot.length().as_ps() as f64 / 8e12;
                sums[index] += octets / full.max(1.0);
            }
        }
    }
    sums.iter().map(|sum| sum / wanted.len().max(1) as f64).collect()
}
