//! The register is whole, what is chosen is run, and every program written so far passes.

use super::*;
use crate::cases::cases;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

fn chosen(names: &[&str], levels: &[Level]) -> Vec<String> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let selection = Selection { names, levels: levels.to_vec() };
    let runs = selection.runs().expect("names of the register");
    runs.iter().map(|(case, run)| format!("{} {}", case.id, run.level.letter())).collect()
}

#[test]
fn the_register_holds_148_cases_each_under_its_own_id_and_group() {
    let ids: BTreeSet<_> = cases().map(|case| case.id).collect();
    assert_eq!((ids.len(), cases().count()), (148, 148));
    for group in GROUPS {
        for (index, case) in group.cases.iter().enumerate() {
            assert_eq!(case.id, format!("{}-{:02}", group.name, index + 1));
            assert!(!case.runs.is_empty(), "{} runs nowhere", case.id);
            let levels: BTreeSet<_> = case.runs.iter().map(|run| run.level).collect();
            assert_eq!(levels.len(), case.runs.len(), "{} has a level twice", case.id);
        }
    }
}

#[test]
fn a_case_is_chosen_by_its_id_or_its_group_in_any_case_of_letters() {
    assert_eq!(chosen(&["ibrx-02"], &[]), ["IBRX-02 E", "IBRX-02 L"]);
    assert_eq!(chosen(&["ENC-17", "enc-01"], &[Level::Codec]), ["ENC-01 C", "ENC-17 C"]);
    assert_eq!(chosen(&["IBFC"], &[Level::Engine]).len(), 12);
    assert_eq!(chosen(&["IBFC", "IBFC-01"], &[]), chosen(&["IBFC"], &[]));
    let all = cases().map(|case| case.runs.len()).sum::<usize>();
    assert_eq!(chosen(&[], &[]).len(), all);
    let unknown = Selection { names: vec!["IBRX-99".to_owned()], levels: Vec::new() };
    assert_eq!(unknown.runs().err().as_deref(), Some("IBRX-99"));
}

#[test]
fn every_program_on_octets_and_on_the_virtual_clock_passes() {
    let selection = Selection { names: Vec::new(), levels: vec![Level::Codec, Level::Engine] };
    for (case, run) in selection.runs().expect("all of them") {
        let outcome = perform(case, run, &mut |_, _| {});
        let letter = run.level.letter();
        let allowed = matches!(outcome.verdict, Verdict::Pass | Verdict::Skip);
        assert!(allowed, "{} {letter}: {}", case.id, outcome.reason);
        assert!(!outcome.reason.is_empty(), "{} {letter} does not say what it saw", case.id);
    }
}

const fn run(level: Level, program: fn(Level) -> Finding) -> Run {
    Run { level, program }
}

const PROBE: Case = Case {
    id: "PROBE-01",
    title: "a program of this test",
    source: "here",
    note: "",
    runs: &[
        run(Level::Codec, |_| Ok("seen".to_owned())),
        run(Level::Codec, |_| panic!("out of {}", "bounds")),
        run(Level::Codec, |_| Err("two are not three".to_owned().into())),
        run(Level::Codec, |_| Err(Failure::Inconclusive("the host was late".to_owned()))),
        run(Level::Codec, |_| Err(Failure::Skipped("no tool".to_owned()))),
    ],
};

#[test]
fn a_program_that_panics_has_failed_and_every_other_outcome_keeps_its_reason() {
    static CASE: Case = PROBE;
    let outcomes = CASE.runs.iter().map(|run| perform(&CASE, *run, &mut |_, _| {}));
    let found: Vec<_> = outcomes.map(|outcome| (outcome.verdict, outcome.reason)).collect();
    let expected = [
        (Verdict::Pass, "seen"),
        (Verdict::Fail, "panicked: out of bounds"),
        (Verdict::Fail, "two are not three"),
        (Verdict::Inconclusive, "the host was late"),
        (Verdict::Skip, "no tool"),
    ];
    assert_eq!(found, expected.map(|(verdict, reason)| (verdict, reason.to_owned())));
}

static CASE: Case = Case { id: "TEST-01", title: "", source: "", note: "", runs: &[] };

fn shaky(_: Level) -> Finding {
    Err(Failure::Inconclusive("late".to_owned()))
}

fn outcome(run: Run) -> (Verdict, String, u32) {
    let mut told = 0;
    let Outcome { verdict, reason, .. } = perform(&CASE, run, &mut |repeats, _| told = repeats);
    (verdict, reason, told)
}

#[test]
fn a_live_run_that_says_nothing_is_repeated_three_times() {
    let expected = (Verdict::Inconclusive, "late (run 4 times)".to_owned(), 3);
    assert_eq!(outcome(run(Level::Live, shaky)), expected);
    assert_eq!(outcome(run(Level::Engine, shaky)), (Verdict::Inconclusive, "late".to_owned(), 0));
}

#[test]
fn a_repeated_run_that_says_something_is_the_verdict() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    fn second_time(level: Level) -> Finding {
        if RUNS.fetch_add(1, Ordering::Relaxed) == 0 { shaky(level) } else { Ok("seen".to_owned()) }
    }
    let expected = (Verdict::Pass, "seen (run twice)".to_owned(), 1);
    assert_eq!(outcome(run(Level::Live, second_time)), expected);
}

#[test]
fn a_program_that_panics_has_failed_at_once() {
    fn faulty(_: Level) -> Finding {
        panic!("no such lane")
    }
    let expected = (Verdict::Fail, "panicked: no such lane".to_owned(), 0);
    assert_eq!(outcome(run(Level::Live, faulty)), expected);
}
