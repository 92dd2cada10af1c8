//! A fabric beyond what ibsim takes: 4 096 NICs and 512 switches under OpenSM.

use super::{Managed, PROGRAMS, compare, has_packages};
use emulation::clock::Stopwatch;

const LARGE: &str = "tests/tests/lab/managed/large.toml";

/// Programs that read every node, every port, or a route.
const WORDS: [&str; 4] = ["ibnetdiscover", "iblinkinfo", "ibtracert @h1 @h3", "ibstat"];

#[test]
#[ignore = "slow: some minutes, 2 GB"]
fn opensm_sweeps_4096_nics_and_512_switches() {
    if !has_packages() {
        return;
    }
    let stopwatch = Stopwatch::start();
    let lab = Managed::up(LARGE, &[]);
    eprintln!("up after {:.1} s", stopwatch.seconds());
    let stopwatch = Stopwatch::start();
    let manager = lab.manage_within(1_800.0);
    let (sent, repeated) = (lab.count(|count| count.sent), lab.count(|count| count.repeated));
    let seconds = stopwatch.seconds();
    eprintln!("the fabric is up after {seconds:.0} s, {sent} datagrams, {repeated} repeated");
    assert!(!manager.said("ERR"), "{}", manager.text());
    compare(&lab, &PROGRAMS.iter().filter(|row| WORDS.contains(&row.words)).collect::<Vec<_>>());
    // From one corner of the tree to the other the way has all levels.
    let [first, last] = ["h0", "h4095"].map(|name| lab.oracle.node(name).lid.to_string());
    let way = super::oracle::traced(&lab.good(&["ibtracert", &first, &last]));
    assert_eq!(way.len(), 6, "{way:?}");
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
