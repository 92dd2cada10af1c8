//! Maximum rate of a switch between two veth pairs, compared with a bare forwarder and Open vSwitch's userspace datapath.
//!
//! ```text
//! cargo bench -p pausebed-tests --bench attached [-- [--repeats N] [--yardsticks DIR]]
//!
//!   generator ── a0 ═ f0 ── pausebed run | bare sendmmsg and recvmmsg | ovs-vswitchd ── f1 ═ b0 ── sink
//! ```
//!
//! pausebed is measured twice: with its defaults, and with packet sockets instead of rings for sending.
//!
//! The sources of generator, sink and bare forwarder are in `../shared/bench` or the folder of `--yardsticks`; the bench
//! builds them in a temporary folder. The forwarders take turns, so that other load on the machine affects all alike. The
//! result is the median over the turns of the ratio within each turn. The bench needs the right to create namespaces,
//! iproute2, iperf3 and ethtool. Open vSwitch is optional.

#![expect(clippy::disallowed_methods, reason = "this bench starts the programs that it compares")]

mod contestants;
mod ground;

use contestants::{Contestant, OpenVSwitch, Ours};
use ground::Ground;

/// Frame sizes in octets, without FCS.
const SIZES: [usize; 2] = [64, 1500];

/// Results of one forwarder in one turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Frames per second, by size.
    frames: [f64; SIZES.len()],
    /// TCP throughput in bit/s, by iperf3; `None` for the bare forwarder, which forwards in one direction only.
    bulk: Option<f64>,
    /// Round-trip time of a ping, in microseconds.
    ping: Option<f64>,
}

fn option(name: &str) -> Option<String> {
    let words: Vec<String> = std::env::args().collect();
    words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median over the turns of `own` divided by `other`.
fn ratio(own: &[Turn], other: &[Turn], of: impl Fn(&Turn) -> Option<f64>) -> f64 {
    let pairs = own.iter().zip(other);
    median(pairs.filter_map(|(own, other)| Some(of(own)? / of(other)?)).collect())
}

/// Measures one turn. Stops the forwarder afterwards, even if it did not start completely.
fn measure(ground: &Ground, contestant: &mut dyn Contestant) -> Result<Turn, String> {
    let turn = contestant.begin(ground).and_then(|()| turn(ground, contestant));
    contestant.end(ground);
    turn
}

fn turn(ground: &Ground, contestant: &dyn Contestant) -> Result<Turn, String> {
    let mut frames = [0.0; SIZES.len()];
    for (size, frames) in SIZES.iter().zip(&mut frames) {
        *frames = ground.frames_per_s(*size, contestant.is_bare())?;
    }
    if contestant.is_bare() {
        return Ok(Turn { frames, bulk: None, ping: None });
    }
    let (ping, bulk) = (ground.round_trip()?, ground.bulk()?);
    Ok(Turn { frames, bulk: Some(bulk), ping: Some(ping) })
}

fn run() -> Result<(), String> {
    let repeats = option("--repeats").map_or(Ok(5), |text| text.parse::<usize>());
    let repeats = repeats.map_err(|error| format!("--repeats: {error}"))?.max(1);
    let ground = Ground::make(option("--yardsticks"))?;
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(Ours::sending_by("ring")),
        Box::new(Ours::sending_by("socket")),
        Box::new(contestants::Bare),
    ];
    if OpenVSwitch::is_there() {
        contestants.push(Box::new(OpenVSwitch));
    } else {
        println!("Open vSwitch (package openvswitch-switch) is not installed and is left out");
    }
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); contestants.len()];
    for turn in 1..=repeats {
        for (contestant, turns) in contestants.iter_mut().zip(&mut turns) {
            let measured = measure(&ground, contestant.as_mut())?;
            let kilo = measured.frames.map(|frames| format!("{:.0}", frames / 1e3)).join(", ");
            eprintln!("turn {turn} of {repeats}: {} {kilo} k frames/s", contestant.name());
            turns.push(measured);
        }
    }
    for (contestant, own) in contestants.iter().zip(&turns) {
        let kilo = |place: usize| median(own.iter().map(|turn| turn.frames[place]).collect()) / 1e3;
        print!(
            "{:<35} {:>6.0} k frames/s of 64 B, {:>6.0} k of 1500 B",
            contestant.name(),
            kilo(0),
            kilo(1)
        );
        if !contestant.is_bare() {
            let bulk = median(own.iter().filter_map(|turn| turn.bulk).collect()) / 1e9;
            let ping = median(own.iter().filter_map(|turn| turn.ping).collect());
            print!(", iperf3 {bulk:.2} Gb/s, ping {ping:.0} us");
        }
        println!();
    }
    let owed = [(None, None), (Some(0.6), None), (Some(2.0), Some(1.2))];
    for ((contestant, other), (goal, bulk_goal)) in contestants.iter().zip(&turns).skip(1).zip(owed)
    {
        for (place, size) in SIZES.iter().enumerate() {
            let ratio = ratio(&turns[0], other, |turn| Some(turn.frames[place]));
            print_ratio(&format!("frames of {size} B"), contestant.name(), ratio, goal);
        }
        if !contestant.is_bare() {
            let bulk = ratio(&turns[0], other, |turn| turn.bulk);
            print_ratio("iperf3", contestant.name(), bulk, bulk_goal);
            let ping = ratio(&turns[0], other, |turn| turn.ping);
            print_ratio("ping", contestant.name(), ping, None);
        }
    }
    Ok(())
}

fn print_ratio(what: &str, other: &str, ratio: f64, goal: Option<f64>) {
    let word = match goal {
        Some(goal) if ratio >= goal => format!(", owed {goal}: reached"),
        Some(goal) => format!(", owed {goal}: MISSED"),
        None => String::new(),
    };
    println!("{what}: {ratio:.2} of {other}{word}");
}

fn main() {
    if let Err(reason) = run() {
        println!("nothing measured: {reason}");
        std::process::exit(3);
    }
}
