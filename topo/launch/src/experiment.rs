//! One run of one scenario: it is launched, measured, judged and written to files.

use crate::error::OrHost;
use crate::{Job, LaunchError, Outcome, Progress, Substrate};
use crate::{remove_leftovers, scratch, write_file};
use capture::{CapturePlan, CapturedPort, WhenFull};
use emulation::wiring::End;
use proto::frame::Frame;
use proto::technology::Technology;
use proto::units::Instant;
use results::deadlock::{self, Deadlock};
use results::evaluate::{RunData, evaluate};
use results::lossless::LosslessDrops;
use results::remarks;
use results::run_directory::hosts;
use results::run_directory::result::{
    self, Conservation, Definition, GridSummary, Host, Parameter, Phase, RunResult, SCHEMA,
    Standing,
};
use results::run_directory::{self, Remark, RemarkKind, RunRecord, WriteError, junit};
use results::saturation;
use results::verdict::{Judgement, Measured, Verdict, judge};
use results::violations::Violations;
use scenario::Scenario;
use scenario::render::{Lab, render};
use scenario::run::Pace;
use scenario::settings::{Origin, Setting};
use std::collections::BTreeMap;
use std::path::Path;

/// The conditions of one run of a scenario.
pub struct Conditions<'a> {
    /// The substrate.
    pub substrate: &'static Substrate,
    /// Wall time over fabric time, on live substrates.
    pub dilation: u64,
    /// That is an estimate: a live run that falls behind stretches its clock.
    pub elastic: bool,
    /// The number of threads on the virtual clock. It changes no result.
    pub threads: usize,
    /// The run directory; without it no files are written.
    pub folder: Option<&'a Path>,
    /// The command line, for the record.
    pub command: String,
    /// Frames fed in from outside.
    pub injections: Vec<(End, Instant, Frame)>,
}

impl Conditions<'_> {
    /// A run on one thread by the command `command`, not slowed down, without files and injected frames.
    pub fn new(substrate: &'static Substrate, command: &str) -> Conditions<'static> {
        let (command, injections) = (command.to_owned(), Vec::new());
        let (dilation, elastic, threads, folder) = (1, false, 1, None);
        Conditions { substrate, dilation, elastic, threads, folder, command, injections }
    }
}

/// A run with a result.
#[derive(Debug)]
pub struct Experiment {
    /// As in `run.json`.
    pub result: RunResult,
    /// The rendered scenario.
    pub lab: Lab,
    /// The recordings and the fidelity.
    pub outcome: Outcome,
    /// The measures without a value, with the reason.
    pub nulls: Vec<(String, String)>,
}

impl Experiment {
    /// Renders a scenario and runs it.
    ///
    /// # Errors
    /// If the run fails or its files cannot be written.
    pub fn run(
        scenario: &Scenario,
        conditions: Conditions<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Experiment, LaunchError> {
        Experiment::of(scenario, render(scenario), conditions, progress)
    }

    /// Runs a scenario that is rendered already, as `lab`.
    ///
    /// # Errors
    /// If the run does not come back or its files cannot be written.
    pub fn of(
        scenario: &Scenario,
        lab: Lab,
        conditions: Conditions<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Experiment, LaunchError> {
        if let Some(folder) = conditions.folder {
            std::fs::create_dir_all(folder)
                .or_host(format!("cannot make the folder {}", folder.display()))?;
        }
        remove_leftovers();
        let scratch = scratch::make().or_host("cannot make the folder scratch")?;
        let job = Job {
            dilation: conditions.dilation,
            elastic: conditions.elastic,
            threads: conditions.threads,
            capture: capture(scenario, &lab, &conditions),
            injections: conditions.injections.clone(),
            ..Job::new(scenario, &lab, scratch.path())
        };
        let outcome = (conditions.substrate.run)(&job, progress)?;
        let measured = measure(&lab, &outcome);
        let mut expectations = judge(&lab.expectations, &measured);
        expectations.extend(hosts::judge(&lab.fabric.hosts, &outcome.hosts));
        let mut result = describe(scenario, &lab, &conditions, &outcome, &measured, expectations);
        let nulls = measured.into_iter().filter_map(|(name, value)| Some((name, value.err()?)));
        let nulls: Vec<(String, String)> =
            nulls.chain(hosts::missing(&lab.fabric.hosts, &outcome.hosts)).collect();
        if let Some(folder) = conditions.folder {
            result.files = write_files(folder, &lab, &outcome, &nulls)?;
            result.files.extend(hosts::write(folder, &lab.fabric.hosts, &outcome.hosts)?);
            let file = folder.join("scenario.toml");
            write_file(&file, &scenario.text)?;
            result::write(folder, &result)?;
            junit::write(folder, &result)?;
        }
        Ok(Experiment { result, lab, outcome, nulls })
    }
}

fn measure(lab: &Lab, outcome: &Outcome) -> Vec<Measured> {
    let outputs = hosts::outputs(&lab.fabric.hosts, &outcome.hosts);
    let run = RunData::new(&lab.fabric, &outcome.recordings).with_outputs(&outputs);
    lab.measures.iter().map(|measure| (measure.name.clone(), evaluate(measure, &run))).collect()
}

fn capture(scenario: &Scenario, lab: &Lab, conditions: &Conditions<'_>) -> Option<CapturePlan> {
    let folder = conditions.folder?;
    if scenario.capture.is_empty() {
        return None;
    }
    let port = |end: &End| CapturedPort {
        at: *end,
        technology: scenario.fabric.technology,
        rate: lab.fabric.nominal_rate(*end).unwrap_or(scenario.fabric.link.rate),
        fed: conditions.injections.iter().any(|(fed, ..)| fed == end),
    };
    let live = conditions.substrate.is_live && scenario.run.pace == Pace::Wall;
    Some(CapturePlan {
        file: folder.join("capture.pcapng"),
        scenario: scenario.name.clone(),
        seed: scenario.run.seed,
        dilation: live.then_some(conditions.dilation),
        snaplen: scenario.run.snaplen,
        when_full: if live { WhenFull::Drop } else { WhenFull::Wait },
        ports: scenario.capture.iter().map(port).collect(),
    })
}

fn describe(
    scenario: &Scenario,
    lab: &Lab,
    conditions: &Conditions<'_>,
    outcome: &Outcome,
    measured: &[Measured],
    expectations: Vec<Judgement>,
) -> RunResult {
    let last = outcome.recordings.iter().flat_map(|recording| &recording.last);
    let conservation = Conservation::of(last, &outcome.on_cables);
    let lossless_drops = lossless_drops(scenario, lab, conditions, outcome);
    let violations = Violations::of(&lab.fabric, &outcome.recordings);
    let verdict = match result::verdict(&outcome.fidelity, &expectations, lossless_drops.as_ref()) {
        _ if violations.is_some() => Verdict::Fail,
        // A lost frame that is not counted is an error, whatever the measures are.
        Verdict::Pass if !conservation.closes() => Verdict::Fail,
        judged => judged,
    };
    RunResult {
        schema: SCHEMA,
        scenario: scenario.name.clone(),
        source: scenario.source.clone(),
        seed: scenario.run.seed,
        backend: conditions.substrate.name.to_owned(),
        dilation: outcome.dilation,
        pieces: outcome.pieces.clone(),
        pace: conditions.substrate.is_live.then(|| scenario.run.pace.word().to_owned()),
        repeated: outcome.repeated,
        scheme: scenario.scheme.kind.clone(),
        verdict,
        say: scenario.say.as_ref().map(|say| say.with(&result::flat(measured))),
        figures: scenario.figures.clone(),
        measures: result::flat(measured),
        definitions: lab.measures.iter().map(|m| (m.name.clone(), Definition::of(m))).collect(),
        expectations,
        fidelity: outcome.fidelity,
        conservation,
        cables: outcome.cables.clone(),
        refused: outcome.refused.clone(),
        captures: result::captures(&outcome.recordings),
        deadlocks: deadlocks(lab, outcome),
        headroom_alarms: result::headroom_alarms(&lab.fabric, &outcome.recordings),
        lossless_drops,
        violations,
        remarks: remarks::unanswered_marks(
            &scenario.scheme.kind,
            &scenario.fabric.foreign,
            &lab.fabric,
            &outcome.recordings,
        ),
        fabric_seconds: lab.plan.stop.as_ps() as f64 / 1e12,
        host: host(conditions, outcome),
        files: BTreeMap::new(),
        grid: GridSummary::of(&outcome.recordings),
        tau_ps: lab.fabric.tau.as_ps(),
        phases: phases(lab),
        parameters: parameters(scenario),
        saturation: saturation::observe(
            &lab.fabric,
            &outcome.recordings,
            Some(scenario.fabric.switch.buffer),
        ),
        input_buffer_bytes: match scenario.fabric.technology {
            Technology::Infiniband => scenario.fabric.switch.buffer.get(),
            Technology::Ethernet => 0,
        },
        completion: result::completion(&lab.fabric, &outcome.recordings),
        hosts: hosts::lines(&lab.fabric.hosts, &outcome.hosts),
    }
}

/// Lost lossless frames. Frames that are fed from outside obey no pause, so they are expected to overrun headroom.
fn lossless_drops(
    scenario: &Scenario,
    lab: &Lab,
    conditions: &Conditions<'_>,
    outcome: &Outcome,
) -> Option<LosslessDrops> {
    let fed = !conditions.injections.is_empty();
    let fed = fed.then_some("frames fed from outside obey no pause");
    let expected = fed.or(scenario.run.expected_drops());
    LosslessDrops::of(&lab.fabric, &outcome.recordings, expected)
}

fn host(conditions: &Conditions<'_>, outcome: &Outcome) -> Host {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let wall = outcome.wall_seconds.max(1e-9);
    Host {
        wall_seconds: outcome.wall_seconds,
        frame_hops_per_s: (outcome.frame_hops as f64 / wall) as u64,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: crate::COMMIT.to_owned(),
        kernel: kernel.trim().to_owned(),
        versions: BTreeMap::from([
            ("shim".to_owned(), emulation::cable::shim::VERSION.to_string()),
            ("scheduling".to_owned(), outcome.scheduling.clone()),
        ]),
        command: conditions.command.clone(),
    }
}

fn phases(lab: &Lab) -> Vec<Phase> {
    let ends = lab.phases.iter().skip(1).map(|phase| phase.start);
    let ends = ends.chain(std::iter::once(lab.plan.stop));
    let named = lab.phases.iter().zip(ends).map(|(phase, end)| Phase {
        name: phase.name.clone(),
        from_ps: phase.start.as_ps(),
        to_ps: end.as_ps(),
    });
    named.collect()
}

/// The settings of the scenario. A comment on the line of a setting is its source; the first word of the comment can
/// be `derived:`, `reading:` or `differs:`.
fn parameters(scenario: &Scenario) -> Vec<Parameter> {
    let scheme = proto::congestion::schemes::find(&scenario.scheme.kind);
    let keys = || scheme.iter().flat_map(|scheme| scheme.keys.iter().copied().flatten());
    let row = |setting: &Setting| {
        let of_scheme = setting.name.strip_prefix("scheme.");
        let own = match (of_scheme, scheme) {
            (Some(_), Some(scheme)) => scheme.source,
            _ => &scenario.source,
        };
        let of_key = of_scheme.and_then(|name| keys().find(|key| key.name == name));
        let (standing, source, source_value) = match &setting.origin {
            Origin::File(Some(comment)) => {
                let (standing, source) = standing(comment);
                (standing, source.to_owned(), None)
            }
            Origin::Override(old) if old.as_ref() != Some(&setting.value) => {
                (Standing::Differs, "command line".to_owned(), old.clone())
            }
            Origin::File(None) | Origin::Override(_) => (Standing::Stated, own.to_owned(), None),
            Origin::Default => {
                let source = of_key.map_or("", |key| key.source);
                (Standing::Default, source.to_owned(), None)
            }
        };
        Parameter {
            name: setting.name.clone(),
            value: setting.value.clone(),
            unit: String::new(),
            source,
            standing,
            source_value,
        }
    };
    scenario.settings.iter().map(row).collect()
}

/// The relation of a value to its source, and the source, from a comment.
fn standing(comment: &str) -> (Standing, &str) {
    let words = [
        ("derived:", Standing::Derived),
        ("reading:", Standing::Reading),
        ("differs:", Standing::Differs),
    ];
    let found = words.iter().find_map(|(word, standing)| {
        comment.strip_prefix(word).map(|rest| (*standing, rest.trim()))
    });
    found.unwrap_or((Standing::Stated, comment))
}

/// Deadlocks: outputs that waited for each other in a circle.
fn circles(lab: &Lab, outcome: &Outcome) -> Vec<Deadlock> {
    let holds: Vec<_> = outcome.recordings.iter().map(|recording| &recording.holds).collect();
    deadlock::found(&lab.waits, &holds)
}

/// Deadlocks with the names of ports.
fn deadlocks(lab: &Lab, outcome: &Outcome) -> Vec<result::DeadlockLine> {
    let line = |deadlock: &Deadlock| result::DeadlockLine {
        at_ps: deadlock.at.as_ps(),
        over_ps: deadlock.over.map(Instant::as_ps),
        tc: deadlock.tc,
        circle: deadlock.circle.iter().map(|end| lab.fabric.wiring.end_name(*end)).collect(),
    };
    circles(lab, outcome).iter().map(line).collect()
}

fn write_files(
    folder: &Path,
    lab: &Lab,
    outcome: &Outcome,
    nulls: &[(String, String)],
) -> Result<BTreeMap<String, run_directory::FileSummary>, WriteError> {
    let phases = lab.phases.iter().enumerate().map(|(index, phase)| Remark {
        at: phase.start,
        kind: RemarkKind::Phase { index, name: phase.name.clone() },
    });
    let nulls = nulls.iter().map(|(measure, why)| Remark {
        at: lab.plan.stop,
        kind: RemarkKind::Null { measure: measure.clone(), why: why.clone() },
    });
    let deadlocks = circles(lab, outcome).into_iter().flat_map(|deadlock| {
        let Deadlock { at, tc, circle, over } = deadlock;
        let over = over.map(|at| Remark { at, kind: RemarkKind::DeadlockOver { tc } });
        let circle = circle.iter().map(|end| lab.fabric.wiring.end_name(*end)).collect();
        [Remark { at, kind: RemarkKind::Deadlock { tc, circle } }].into_iter().chain(over)
    });
    let mut remarks: Vec<Remark> = phases.chain(nulls).chain(deadlocks).collect();
    remarks.sort_by_key(|remark| remark.at);
    let record = RunRecord {
        fabric: &lab.fabric,
        recordings: &outcome.recordings,
        fidelity: &outcome.timeline,
        remarks: &remarks,
        all_events: lab.plan.all_events,
    };
    run_directory::write(folder, &record)
}
