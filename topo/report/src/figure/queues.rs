//! The panel of queues: those that the scenario measures, or the longest before hot ports, of both runs.

use super::panel::{Group, Label, Panel, Series, Stroke};
use crate::data::most;
use crate::facts::{Facts, Side};
use chart::scale;
use maud::html;
use proto::params::quantity::{self, Scale};
use proto::units::{Bytes, Duration};
use results::saturation::Output;
use std::collections::BTreeSet;

/// Queues in the panel.
const QUEUES_MAX: usize = 3;
/// Expiries that are drawn; more would be a grey wall.
const EXPIRIES_MAX: f64 = 100.0;
/// Octets of one of the axis.
const KIB: f64 = 1_024.0;

/// The panel, if anything ever waited.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    const ROLES: [&str; 3] = ["hot", "signal", "third"];
    let chosen = chosen(facts);
    if chosen.is_empty() {
        return None;
    }
    let series =
        facts.sides().flat_map(|side| chosen.iter().filter_map(|o| side.run.series.get(*o)));
    let highest = most(series.flat_map(|series| &series.queue.max)).max(1.0);
    let top = scale::round_up(highest / KIB);
    let (mut series, mut groups, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (output, role) in chosen.iter().zip(ROLES) {
        for side in facts.sides() {
            let Some(queue) = side.run.series.get(*output).map(|series| &series.queue) else {
                continue;
            };
            let place = series.len();
            let own = Series::new(facts.run.drawn.output_name(*output), side, &queue.mean);
            let own = own.between(&queue.min, &queue.max);
            series.push(own.carried(&format!("n{output}"), top / 2_000.0));
            let dashed = if side.role == "base" { " dashed" } else { "" };
            let class = format!("queue {role}{dashed}");
            groups.insert(0, Group { class, stroke: Stroke::Both, series: vec![place] });
            if side.role == "run" {
                labels.push(Label::new(place, facts.run.drawn.output_name(*output), role, 0));
            }
        }
    }
    let mut about = "in KiB, least to most as a band".to_owned();
    if let Some(base) = &facts.base {
        about += &format!("; dashed: {}", base.name);
    }
    let expiries = expiries(&facts.run);
    if let Some((every, _)) = &expiries {
        about += &format!("; dotted: what was told of congestion expires, every {every}");
    }
    let line = |t: &f64| format!("M{t:.0} -1040V30");
    let lines = expiries.map(|(_, times)| times.iter().map(line).collect::<String>());
    let under = html! { @if let Some(lines) = lines { path class="l expiry" d=(lines) {} } };
    let panel = Panel::new("queue", "queue".to_owned(), about, "bytes", top);
    Some(Panel { scale: KIB, under, series, groups, labels, ..panel })
}

/// Outputs of switches: those that the scenario measures, then those to hot ports, the longest queue first.
fn chosen(facts: &Facts<'_>) -> Vec<usize> {
    let run = facts.run.run;
    let longest = |output: usize| {
        let values = facts.sides().filter_map(|side| side.run.series.get(output));
        most(values.flat_map(|series| &series.queue.mean))
    };
    let measured: BTreeSet<&str> = (run.result.definitions.values())
        .filter(|definition| definition.of == "queue")
        .flat_map(|definition| definition.at.iter().map(String::as_str))
        .collect();
    let rank = |output: usize| {
        let Output { name, to, .. } = &run.outputs.all[output];
        2 * u8::from(measured.contains(name.as_str())) + u8::from(facts.hot.contains(to))
    };
    let mut order: Vec<(u8, f64, usize)> = (0..run.outputs.all.len())
        .filter(|output| run.outputs.all[*output].level > 0)
        .map(|output| (rank(output), longest(output), output))
        .filter(|(_, longest, _)| *longest > 0.0)
        .collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    order.into_iter().take(QUEUES_MAX).map(|(_, _, output)| output).collect()
}

/// With adaptive routing, how long a word about congestion holds, and when the words expire that the
/// first notification and those after each expiry brought, τ.
fn expiries(side: &Side<'_>) -> Option<(String, Vec<f64>)> {
    let run = side.run;
    if run.parameter("fabric.routing") != Some("adaptive") {
        return None;
    }
    let every = run.parameter("fabric.switch.adaptive.timeout")?;
    let first = run.log.first_note_ps? as f64;
    let tau = run.tau_ps();
    let scale = Scale { tau: Duration::from_ps(run.result.tau_ps), frame: Bytes::new(0) };
    let step = quantity::time(every, &scale).ok()?.as_ps() as f64;
    let count = ((run.length_tau() * tau - first) / step.max(1.0)).floor().min(EXPIRIES_MAX);
    let times = (1..=count.max(0.0) as u64).map(|n| (first + n as f64 * step) / tau);
    Some((every.to_owned(), times.collect()))
}
