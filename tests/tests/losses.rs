//! What congestion and outages may take, and under which reason it is counted.

use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use proto::counters::{DropReason, Drops};
use results::run_directory::result::Conservation;
use scenario::Scenario;
use scenario::run::Backend;

/// A run on the virtual clock.
fn made(text: &str) -> Experiment {
    let scenario = Scenario::parse(text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let conditions = Conditions::new(substrate(Backend::Virtual), "");
    Experiment::run(&scenario, conditions, &mut |_| {}).expect("not interrupted")
}

/// A run on the virtual clock: its account, and the drops of all ports.
fn run(text: &str) -> (Conservation, Drops) {
    let run = made(text);
    let mut drops = Drops::default();
    for reading in run.outcome.recordings.iter().flat_map(|recording| &recording.last) {
        reading.ports.iter().for_each(|port| drops.merge(&port.drops));
    }
    (run.result.conservation, drops)
}

/// Three senders to one receiver; the cables of two of them go down again and again, while pauses are on
/// their way.
fn outages(pause: &str, seed: u64) -> String {
    let down = |at: &str, from: u64| {
        let to = from + 15;
        format!("[[outage]]\nat = \"{at}\"\nfrom = \"{from} us\"\nto = \"{to} us\"\n")
    };
    let outages = (0..20).map(|n| down("h1:1", 50 + 40 * n) + &down("s0:3", 60 + 37 * n));
    format!(
        r#"
schema = 1
name = "outages"
run = {{ seed = {seed}, duration = "1 ms" }}
[fabric]
technology = "ethernet"
shape = "star"
hosts = 4
mtu = "1024 B"
link = {{ rate = "25 Gbps", delay = "10 us", pause = "{pause}" }}
switch = {{ headroom = "80 KB", buffer = "100 KB", jitter = "1 us" }}
nic = {{ buffer = "1 MB" }}
[[traffic]]
name = "incast"
from = "h[1-3]"
to = "h0"
arrivals = "backlog"
transport = "rc"
{}"#,
        outages.collect::<String>()
    )
}

#[test]
fn the_account_closes_across_outages_that_meet_pauses_on_their_way() {
    for pause in ["pfc", "pause"] {
        for seed in 1..=3 {
            let (account, drops) = run(&outages(pause, seed));
            assert!(account.closes(), "{pause}, seed {seed}: {account:?}");
            assert!(account.dropped["link_state"] > 0, "frames under way are lost");
            let pauses = drops.get(DropReason::MacControlLinkState);
            assert!(pauses > 0, "{pause}, seed {seed}: no pause met an outage");
        }
    }
}

/// Two switches with two hosts each.
const TWO_SWITCHES: &str = r#"
nodes = [
    { name = "h0", kind = "nic" }, { name = "h1", kind = "nic" },
    { name = "h2", kind = "nic" }, { name = "h3", kind = "nic" },
    { name = "s0", kind = "switch" }, { name = "s1", kind = "switch" },
]
links = [
    { a = "h0:1", b = "s0:1" }, { a = "h1:1", b = "s0:2" }, { a = "s0:3", b = "s1:3" },
    { a = "h2:1", b = "s1:1" }, { a = "h3:1", b = "s1:2" },
]"#;

/// One switch with four hosts. One pool for all inputs can deadlock with more than one switch.
const ONE_SWITCH: &str = "shape = \"star\"\nhosts = 4";

/// Two hosts receive more than their lines carry. Data are lossless and fill the inputs on all ways, while CNPs,
/// messages of switches and acknowledgements, which are lossy, come in there too.
fn feedback(nodes: &str, memory: &str, scheme: &str, seed: u64) -> String {
    format!(
        r#"
schema = 1
name = "feedback"
run = {{ seed = {seed}, duration = "2 ms" }}
[fabric]
technology = "ethernet"
mtu = "1024 B"
link = {{ rate = "25 Gbps", delay = "1 us", pause = "pfc" }}
switch = {{ memory = "{memory}", headroom = "20 KB", buffer = "30 KB", jitter = "1 us" }}
nic = {{ buffer = "1 MB" }}
{nodes}
[scheme]
kind = "{scheme}"
[[traffic]]
name = "left"
from = "h[1-3]"
to = "h0"
arrivals = "backlog"
transport = "rc"
[[traffic]]
name = "right"
from = ["h0", "h1", "h3"]
to = "h2"
arrivals = "backlog"
transport = "rc"
"#
    )
}

#[test]
fn feedback_is_not_lost_by_the_lossless_congestion_that_it_reports() {
    let fabrics = [
        (TWO_SWITCHES, "per-input", "bcn"),
        (TWO_SWITCHES, "per-input", "qcn"),
        (TWO_SWITCHES, "per-input", "dcqcn"),
        (ONE_SWITCH, "global-watermark", "dcqcn"),
    ];
    for (nodes, memory, scheme) in fabrics {
        for seed in 1..=4 {
            let (account, drops) = run(&feedback(nodes, memory, scheme, seed));
            assert!(account.closes() && account.delivered > 10_000, "{memory}: {account:?}");
            assert_eq!(drops.total(), 0, "{memory}, {scheme}, seed {seed}: {account:?}");
        }
    }
}

#[test]
fn one_mark_for_all_inputs_of_two_switches_stops_both_and_the_run_says_so() {
    let text = feedback(TWO_SWITCHES, "global-watermark", "none", 1);
    let made = made(&text);
    let deadlocks = made.result.deadlocks.iter().map(|line| (line.over_ps, line.circle.join(" ")));
    assert_eq!(deadlocks.collect::<Vec<_>>(), [(None, "s0:3 s1:3".to_owned())]);
    assert!(made.result.conservation.buffered > 0);
}

/// Five senders to one receiver, and traffic the other way that delays pauses. Inputs below the `threshold` fill the
/// shared part.
fn exhausted(threshold: &str, headroom: u64, delay: u64) -> String {
    format!(
        r#"
schema = 1
name = "exhausted"
run = {{ seed = 1, duration = "300 us" }}
[fabric]
technology = "ethernet"
shape = "star"
hosts = 6
mtu = "4096 B"
link = {{ rate = "10 Gbps", delay = "{delay} ns", pause = "pfc" }}
nic = {{ buffer = "4 MB" }}
[fabric.switch]
memory = "shared-pool"
headroom = "{headroom} B"
jitter = "0 ns"
pool = {{ size = "120 KB", threshold = {threshold}, reserve = "0 B" }}
[[traffic]]
name = "incast"
from = "h[1-5]"
to = "h0"
arrivals = "backlog"
transport = "ud"
size = "4096 B"
[[traffic]]
name = "back"
from = "h*"
to = "h*"
arrivals = "poisson"
load = 0.3
transport = "ud"
size = "4096 B"
"#
    )
}

#[test]
fn the_least_headroom_of_a_shared_pool_that_is_full_loses_nothing() {
    for threshold in ["\"20 MB\"", "0"] {
        for delay in (50..1_000).step_by(19) {
            let refused =
                Scenario::parse(&exhausted(threshold, 1, delay), &[]).expect_err("little");
            let text = refused.to_string();
            let (_, hint) = text.split_once("headroom = \"").expect("a hint");
            let (octets, _) = hint.split_once(' ').expect("a number of octets");
            let least = octets.parse().expect("a number of octets");
            let (account, drops) = run(&exhausted(threshold, least, delay));
            assert!(account.closes(), "{account:?}");
            assert_eq!(
                drops.get(DropReason::HeadroomOverrun),
                0,
                "{threshold}, {delay} ns, {least} B"
            );
        }
    }
}
