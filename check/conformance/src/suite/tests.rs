//! The register is whole, what is chosen is run, and every program written so far passes.

use super::*;
use crate::case::Script;
use crate::cases::{SCRIPTS, cases};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

fn chosen(names: &[&str], levels: &[Level]) -> Vec<String> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let selection = Selection { names, levels: levels.to_vec() };
    let runs = selection.runs().expect("names of the register");
    runs.iter().map(|(case, level)| format!("{} {}", case.id, level.letter())).collect()
}

#[test]
fn the_register_holds_227_cases_each_under_its_own_id_and_group() {
    let ids: BTreeSet<_> = cases().map(|case| case.id.as_str()).collect();
    assert_eq!((ids.len(), cases().count()), (227, 227));
    let scripts = SCRIPTS.concat();
    assert_eq!(scripts.len(), 227);
    assert_eq!(scripts.into_iter().map(|(id, _)| id).collect::<BTreeSet<_>>(), ids);
    for group in GROUPS.iter() {
        for (index, case) in group.cases.iter().enumerate() {
            assert_eq!(case.id, format!("{}-{:02}", group.name, index + 1));
            assert!(!case.levels.is_empty(), "{} runs nowhere", case.id);
            let levels: BTreeSet<_> = case.levels.iter().collect();
            assert_eq!(levels.len(), case.levels.len(), "{} has a level twice", case.id);
        }
    }
}

#[test]
fn a_case_is_chosen_by_its_id_or_its_group_in_any_case_of_letters() {
    assert_eq!(chosen(&["ibrx-02"], &[]), ["IBRX-02 E", "IBRX-02 L"]);
    assert_eq!(chosen(&["ENC-17", "enc-01"], &[Level::Codec]), ["ENC-01 C", "ENC-17 C"]);
    assert_eq!(chosen(&["IBFC"], &[Level::Engine]).len(), 13);
    assert_eq!(chosen(&["IBFC", "IBFC-01"], &[]), chosen(&["IBFC"], &[]));
    let all = cases().map(|case| case.levels.len()).sum::<usize>();
    assert_eq!(chosen(&[], &[]).len(), all);
    let unknown = Selection { names: vec!["IBRX-99".to_owned()], levels: Vec::new() };
    assert_eq!(unknown.runs().err().as_deref(), Some("IBRX-99"));
}

#[test]
fn every_program_on_octets_and_on_the_virtual_clock_passes() {
    let selection = Selection { names: Vec::new(), levels: vec![Level::Codec, Level::Engine] };
    for (case, level) in selection.runs().expect("all of them") {
        let outcome = perform(case, level, &mut |_, _| {});
        let letter = level.letter();
        let allowed = matches!(outcome.verdict, Verdict::Pass | Verdict::Skip);
        assert!(allowed, "{} {letter}: {}", case.id, outcome.reason);
        assert!(!outcome.reason.is_empty(), "{} {letter} does not say what it saw", case.id);
    }
}

/// A case of this test with this script.
fn case(script: Script) -> &'static Case {
    let case = Case {
        id: "TEST-01".to_owned(),
        levels: vec![Level::Codec],
        title: "a script of this test".to_owned(),
        source: "here".to_owned(),
        note: String::new(),
        script,
    };
    Box::leak(Box::new(case))
}

#[test]
fn a_program_that_panics_has_failed_and_every_other_outcome_keeps_its_reason() {
    let scripts: [Script; 5] = [
        |_| Ok("seen".to_owned()),
        |_| panic!("out of {}", "bounds"),
        |_| Err("two are not three".into()),
        |_| Err(Failure::Inconclusive("the host was late".to_owned())),
        |_| Err(Failure::Skipped("no tool".to_owned())),
    ];
    let outcomes = scripts.map(|script| perform(case(script), Level::Codec, &mut |_, _| {}));
    let found = outcomes.map(|outcome| (outcome.verdict, outcome.reason));
    let expected = [
        (Verdict::Pass, "seen"),
        (Verdict::Fail, "panicked: out of bounds"),
        (Verdict::Fail, "two are not three"),
        (Verdict::Inconclusive, "the host was late"),
        (Verdict::Skip, "no tool"),
    ];
    assert_eq!(found, expected.map(|(verdict, reason)| (verdict, reason.to_owned())));
}

fn shaky(_: Level) -> Finding {
    Err(Failure::Inconclusive("late".to_owned()))
}

fn outcome(level: Level, script: Script) -> (Verdict, String, u32) {
    let mut repeated = 0;
    let Outcome { verdict, reason, .. } =
        perform(case(script), level, &mut |repeats, _| repeated = repeats);
    (verdict, reason, repeated)
}

#[test]
fn a_live_run_that_says_nothing_is_repeated_three_times() {
    let expected = (Verdict::Inconclusive, "late (run 4 times)".to_owned(), 3);
    assert_eq!(outcome(Level::Live, shaky), expected);
    assert_eq!(outcome(Level::Engine, shaky), (Verdict::Inconclusive, "late".to_owned(), 0));
}

#[test]
fn a_repeated_run_that_says_something_is_the_verdict() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    fn second_time(level: Level) -> Finding {
        if RUNS.fetch_add(1, Ordering::Relaxed) == 0 { shaky(level) } else { Ok("seen".to_owned()) }
    }
    let expected = (Verdict::Pass, "seen (run twice)".to_owned(), 1);
    assert_eq!(outcome(Level::Live, second_time), expected);
}

#[test]
fn a_program_that_panics_has_failed_at_once() {
    fn faulty(_: Level) -> Finding {
        panic!("no such lane")
    }
    let expected = (Verdict::Fail, "panicked: no such lane".to_owned(), 0);
    assert_eq!(outcome(Level::Live, faulty), expected);
}
