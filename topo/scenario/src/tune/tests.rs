//! Good and bad `[tune]` tables.

use super::*;
use crate::Scenario;
use crate::keyfile::problem::Problems;
use crate::traffic::Offer;

const BASE: &str = r#"schema = 1
name = "tunable"
run = { seed = 3, duration = "1000 mtu" }
fabric = { shape = "star", hosts = 4 }
scheme = { kind = "ib-cca", ccti_increase = 5 }

[[traffic]]
name = "cold"
from = "h*"
to = "uniform"
load = 0.3

[[traffic]]
name = "hot"
from = "h[0-2]"
to = "h3"
load = 0.8
start = "100 mtu"

"#;

fn parse(tune: &str) -> Result<Scenario, Problems> {
    Scenario::parse(&format!("{BASE}{tune}"), &[])
}

fn tune(text: &str) -> Tune {
    parse(text).unwrap_or_else(|faults| panic!("{faults}")).tune.expect("it is there")
}

/// The faults of a bad table, as `line: key: message (hint)`; its first line is 20.
fn faults(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err("it is bad");
    let word = |p: &crate::keyfile::problem::Problem| {
        format!("{}: {}: {} ({})", p.place.line() as i64 - 19, p.path, p.message, p.hint)
    };
    faults.iter().map(word).collect()
}

#[test]
fn an_operator_need_only_say_what_to_search() {
    let tune = tune("[tune]\nsearch = { ccti_increase = \"1..60\" }");
    let values = Values::Whole(1, 60);
    assert_eq!(tune.search, [Searched { name: "ccti_increase".to_owned(), values }]);
    assert_eq!((tune.seeds, tune.runs, tune.goal, tune.window), (2, 400, 0.03, None));
    assert!(tune.cases.is_empty());
    assert_eq!(tune.weights.fairness, 1.0);
}

#[test]
fn ranges_may_be_fractions_and_words_are_listed() {
    let tune = tune(
        "[tune]\nwindow = [\"400 mtu\", \"900 mtu\"]\nweights = { fairness = 2 }\n[tune.search]\n\
         sw_th_frac = \"0.1..0.9\"\nroot_test = [\"enqueue\", \"head_wait\"]",
    );
    assert_eq!(tune.search[0].values, Values::Real(0.1, 0.9));
    assert!(matches!(&tune.search[1].values, Values::Listed(list) if list.len() == 2));
    assert_eq!((tune.weights.fairness, tune.weights.stability), (2.0, 1.0));
    assert_eq!(
        tune.window.map(|(from, to)| (from.as_ps(), to.as_ps())).map(|w| w.0 < w.1),
        Some(true)
    );
}

#[test]
fn a_case_is_the_files_traffic_with_changes() {
    let tune = tune(
        "[tune]\nsearch = { threshold = \"1..15\" }\n[[tune.case]]\nname = \"own\"\n\
         [[tune.case]]\nname = \"few\"\n[tune.case.traffic]\n\
         hot = { rate = \"2 Gbps\", from = \"h[0-1]\" }\n\
         [[tune.case]]\nname = \"only hot\"\nwithout = [\"cold\"]",
    );
    let items = |case: usize| &tune.cases[case].traffic.items;
    assert_eq!(items(0).len(), 2);
    assert_eq!(items(0)[1].offer, Offer::Load(0.8));
    assert!(matches!(items(1)[1].offer, Offer::Rate(_)), "the new key replaces the old one");
    assert_eq!((items(1)[1].from.len(), items(1)[1].start), (2, items(0)[1].start));
    assert_eq!(items(1)[0], items(0)[0]);
    assert_eq!(items(2).len(), 1);
    assert_eq!(items(2)[0].name, "hot");
}

#[test]
fn each_fault_says_where_it_stands_and_what_to_write() {
    let bad = "[tune]\nserach = {}\nruns = 0\nwindow = [\"900 mtu\", \"400 mtu\"]\n[tune.search]\n\
               ccti_increse = \"1..60\"\nccti_timer = \"60..1\"\nthreshold = \"1..99\"\n\
               packet_size = 3\nbecn = [\"ack\"]\n\
               [[tune.case]]\nname = \"x\"\nwithout = [\"wram\"]\n[tune.case.traffic]\n\
               hott = { load = 1 }\nhot = 3\ncold = { laod = 0.5 }";
    let faults = faults(bad);
    let expected = [
        "2: tune.serach: unknown key \"serach\" (did you mean \"search\"?)",
        "3: tune.runs: 0 is out of range",
        "4: tune.window: not a window within the run",
        "6: tune.search.ccti_increse: ib-cca refuses ccti_increse = 1 (did you mean \"ccti_increase\"?)",
        "7: tune.search.ccti_timer: its first end is not below its last (a range",
        "8: tune.search.threshold: ib-cca refuses threshold = 99 (an integer from 0 to 15)",
        "9: tune.search.packet_size: an integer where a range belongs (a range",
        "10: tune.search.becn: there is nothing to choose from",
        "13: tune.case.x.without: no traffic item is called \"wram\" (one of cold, hot)",
        "15: tune.case.x.traffic.hott: no traffic item is called \"hott\" (did you mean \"hot\"?)",
        "16: tune.case.x.traffic.hot: an integer where a table belongs",
        "17: tune.case.x.traffic.cold.laod: unknown key \"laod\" (did you mean \"load\"?)",
    ];
    for wanted in expected {
        assert!(faults.iter().any(|fault| fault.starts_with(wanted)), "{wanted}\n{faults:#?}");
    }
}

#[test]
fn a_budget_that_judges_nobody_is_refused() {
    let faults = faults("[tune]\nsearch = { threshold = \"1..15\" }\nseeds = 3\nruns = 5");
    assert!(
        faults[0].contains("4: tune.runs: 5 runs") && faults[0].contains("at least 6"),
        "{faults:?}"
    );
}
