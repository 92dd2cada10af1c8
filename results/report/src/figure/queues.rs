//! The panel of queues: those that the scenario measures, or the longest before hot ports, of both runs.

use super::panel::{Panel, Series, Stroke};
use crate::data::{OutputSeries, most};
use crate::facts::{Facts, Side};
use chart::scale;
use maud::html;
use proto::params::quantity::{self, Scale};
use proto::units::{Bytes, Duration};
use results::saturation::Output;
use std::collections::BTreeSet;

/// Queues in the panel.
const QUEUES_MAX: usize = 3;
/// Greatest number of expiries that are drawn.
const EXPIRIES_MAX: f64 = 100.0;
/// Octets of a unit of the axis.
const KIB: f64 = 1_024.0;

/// The panel, if anything ever waited.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    let chosen = chosen(facts);
    if chosen.is_empty() {
        return None;
    }
    let series =
        facts.sides().flat_map(|side| chosen.iter().filter_map(|o| side.run.series.get(*o)));
    let highest = most(series.flat_map(|series| &series.queue.max)).max(1.0);
    let top = scale::round_up(highest / KIB);
    let expiries = expiries(&facts.run);
    let beside = facts.base.as_ref().map(|base| format!("; dashed: {}", base.name));
    let expire = expiries
        .as_ref()
        .map(|(every, _)| format!("; dotted: reports of congestion expire, every {every}"));
    let (beside, expire) = (beside.unwrap_or_default(), expire.unwrap_or_default());
    let about = format!("in KiB, least to most as a band{beside}{expire}");
    let mut panel = Panel::new("queue", "queue".to_owned(), about, "bytes", top);
    panel.scale = KIB;
    if let Some((_, times)) = expiries {
        let lines: String = times.iter().map(|t| format!("M{t:.0} -1040V30")).collect();
        panel.under = html! { path class="l expiry" d=(lines) {} };
    }
    for (output, role) in chosen.into_iter().zip(["hot", "signal", "third"]) {
        for side in facts.sides() {
            let Some(OutputSeries { queue, .. }) = side.run.series.get(output) else { continue };
            let name = facts.run.drawn.output_name(output);
            let own = Series::new(name.clone(), side, &queue.mean);
            let own =
                own.between(&queue.min, &queue.max).carried(&format!("n{output}"), top / 2_000.0);
            let dashed = if side.role == "base" { " dashed" } else { "" };
            let place = panel.draws(own, Stroke::Both, format!("queue {role}{dashed}"));
            if side.role == "run" {
                panel.label(place, name, role, 0);
            }
        }
    }
    // The first lies on top.
    panel.groups.reverse();
    Some(panel)
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
        let Output { name, to, .. } = &run.graph.outputs[output];
        2 * u8::from(measured.contains(name.as_str())) + u8::from(facts.hot.contains(to))
    };
    let mut order: Vec<(u8, f64, usize)> = (0..run.graph.outputs.len())
        .filter(|output| run.graph.outputs[*output].level > 0)
        .map(|output| (rank(output), longest(output), output))
        .filter(|(_, longest, _)| *longest > 0.0)
        .collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    order.into_iter().take(QUEUES_MAX).map(|(_, _, output)| output).collect()
}

/// With adaptive routing, the lifetime of a notification, and the expiries of the first notification and of those after
/// each expiry, τ.
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
