//! The result of a search: a table of the best candidates, all runs as CSV, and
//! everything as JSON.

use crate::table::table;
use crate::tune::Tuning;
use crate::tune::objective::Score;
use crate::tune::search::{Length, Stop, Trial};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

/// Candidates in the table.
const SHOWN: usize = 10;

/// The candidates that were judged in every case, best first.
pub fn ranking(tuning: &Tuning) -> Vec<&Trial> {
    let mut complete: Vec<&Trial> = tuning.trials.iter().filter(|t| t.is_complete).collect();
    let key = |trial: &&Trial| tuning.objective.key_of(trial.judged());
    complete.sort_by(|a, b| key(a).compare(&key(b)));
    complete
}

/// The worst value of each figure of a candidate in one case over all seeds.
fn worst(trial: &Trial, case: usize) -> Option<Score> {
    let full = trial.runs.iter().filter(|run| run.case == case && run.length == Length::Full);
    full.map(|run| run.score.clone()).reduce(|a, b| Score {
        cold: if (1.0 - a.cold).abs() >= (1.0 - b.cold).abs() { a.cold } else { b.cold },
        hot: a.hot.min(b.hot),
        fairness: a.fairness.min(b.fairness),
        swing: a.swing.max(b.swing),
        lossless_drops: None,
    })
}

/// A row for each candidate, and the best candidate by case.
pub fn text(tuning: &Tuning) -> String {
    let ranking = ranking(tuning);
    let Some(best) = ranking.first() else {
        return "no candidate was judged in every case: more runs are needed ([tune] runs)".into();
    };
    let mut out = candidates(tuning, &ranking);
    out += "\n\nthe best, case by case (the worst of all seeds)\n";
    out += &cases(tuning, best);
    let settings = tuning.space.settings(&best.point);
    let settings: Vec<String> = settings.map(|(name, value)| format!("{name} = {value}")).collect();
    let goal = tuning.objective.goal * 100.0;
    let verdict = match tuning.winner() {
        Some(_) => format!("cold traffic within {goal} % of its ideal rate in every case"),
        None => format!("not within {goal} % of the ideal rate in every case"),
    };
    let why = match tuning.stop {
        Stop::Settled => "the smallest steps around it are no better",
        Stop::Budget => "all runs are spent",
        Stop::Enough => "the time is up",
        Stop::Interrupted => "interrupted",
    };
    let lost = tuning.lossless_drops().map(|drops| format!("\n\n{}", drops.line(true)));
    out + &format!(
        "{}\n\nfound: {}\n{verdict}; {} runs of {} candidates; {why}",
        lost.unwrap_or_default(),
        settings.join(", "),
        tuning.spent,
        tuning.trials.len(),
    )
}

fn candidates(tuning: &Tuning, ranking: &[&Trial]) -> String {
    let parameters = tuning.space.dimensions.iter().map(|d| d.name.clone());
    let colds = tuning.cases.iter().map(|case| format!("cold {}", case.name));
    let figures = ["hot", "fairness", "swing", "cost"].map(str::to_owned);
    let rows = ranking.iter().take(SHOWN).map(|trial| {
        let settings = tuning.space.settings(&trial.point).map(|(_, value)| value.to_string());
        let all: Vec<Score> =
            (0..tuning.cases.len()).filter_map(|case| worst(trial, case)).collect();
        let least = |of: fn(&Score) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(|score| score.swing).fold(0.0, f64::max);
        let cost = tuning.objective.key_of(trial.judged()).cost;
        let figures = [least(|s| s.hot), least(|s| s.fairness), most, cost];
        settings.chain(all.iter().map(|score| score.cold).chain(figures).map(share)).collect()
    });
    table(parameters.chain(colds).chain(figures), rows, 1)
}

fn cases(tuning: &Tuning, best: &Trial) -> String {
    let header = ["case", "cold owed", "cold got", "cold/owed", "hot", "fairness", "swing"];
    let rows = tuning.cases.iter().enumerate().filter_map(|(index, case)| {
        let score = worst(best, index)?;
        let owed = case.ideal.owed;
        let figures = [owed, owed * score.cold, score.cold, score.hot, score.fairness, score.swing];
        Some(std::iter::once(case.name.clone()).chain(figures.map(share)).collect())
    });
    table(header.map(str::to_owned), rows, 1)
}

fn share(x: f64) -> String {
    format!("{x:.3}")
}

/// A length or the end of a search in one word.
fn word(what: impl Debug) -> String {
    format!("{what:?}").to_lowercase()
}

/// The whole result. The same for one file to the byte, but for the object `host`.
pub fn json(tuning: &Tuning, scenario: &str, host: Value) -> Value {
    let tau = |case: &crate::tune::runner::Prepared| case.scenario.fabric.scale.tau.as_ps().max(1);
    fn settings<'a>(tuning: &'a Tuning, trial: &'a Trial) -> BTreeMap<&'a str, &'a toml::Value> {
        tuning.space.settings(&trial.point).collect()
    }
    let cases = tuning.cases.iter().map(|case| {
        let frames = |at: proto::units::Instant| at.as_ps() as f64 / tau(case) as f64;
        let nodes = &case.scenario.fabric.topology.nodes;
        let hot = case.ideal.hot.iter().map(|hot| {
            json!({ "node": nodes[hot.node].name, "asked": hot.asked, "flows": hot.senders.len() })
        });
        json!({
            "name": case.name, "onset_mtu": frames(case.onset),
            "from_mtu": frames(case.window.0), "to_mtu": frames(case.window.1),
            "cold_ports": case.ideal.cold.len(), "cold_owed": case.ideal.owed,
            "hot": hot.collect::<Vec<_>>(),
        })
    });
    let trials = tuning.trials.iter().map(|trial| {
        let key = tuning.objective.key_of(trial.judged());
        let runs = trial.runs.iter().map(|run| {
            let Score { cold, hot, fairness, swing, .. } = run.score;
            json!({
                "case": tuning.cases[run.case].name, "seed": run.seed, "length": word(run.length),
                "cold": cold, "hot": hot, "fairness": fairness, "swing": swing,
            })
        });
        json!({
            "settings": settings(tuning, trial), "complete": trial.is_complete,
            "miss": key.miss, "cost": key.cost, "runs": runs.collect::<Vec<_>>(),
        })
    });
    json!({
        "schema": 1,
        "scenario": scenario,
        "goal": tuning.objective.goal,
        "met": tuning.winner().is_some(),
        "lossless_drops": tuning.lossless_drops(),
        "stop": word(tuning.stop),
        "best": tuning.best.map(|best| settings(tuning, &tuning.trials[best])),
        "cases": cases.collect::<Vec<_>>(),
        "runs": tuning.spent,
        "trials": trials.collect::<Vec<_>>(),
        "host": host,
    })
}

/// A row for each run.
///
/// # Errors
/// If it cannot be written.
pub fn csv(tuning: &Tuning, to: impl io::Write) -> Result<(), csv::Error> {
    let mut table = csv::Writer::from_writer(to);
    let parameters = tuning.space.dimensions.iter().map(|d| d.name.as_str());
    let figures = ["case", "seed", "length", "cold", "hot", "fairness", "swing", "miss", "cost"];
    table.write_record(std::iter::once("candidate").chain(parameters).chain(figures))?;
    for (number, trial) in tuning.trials.iter().enumerate() {
        for run in &trial.runs {
            let key = tuning.objective.judge(&run.score);
            let Score { cold, hot, fairness, swing, .. } = run.score;
            let mut row = vec![number.to_string()];
            row.extend(tuning.space.settings(&trial.point).map(|(_, value)| value.to_string()));
            row.push(tuning.cases[run.case].name.clone());
            row.extend([run.seed.to_string(), word(run.length)]);
            let figures = [cold, hot, fairness, swing, key.miss, key.cost];
            row.extend(figures.map(|x| format!("{x:.5}")));
            table.write_record(row)?;
        }
    }
    Ok(table.flush()?)
}
