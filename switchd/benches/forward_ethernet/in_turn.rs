//! What control costs a hop, as a ratio to the same hop without: all take turns of a millisecond, so that a
//! host with other work treats them alike.
//!
//! A round times a batch of hops under each in CPU time, and a ratio is taken within its round, to the
//! mean of two switches without control; the figure is the median over the rounds. The order moves on
//! with every round. Where a switch happens to lie in memory is worth some percent, so all are made anew
//! now and then, in another order. What the two without control differ by shows what all this is
//! good to.

use super::hop::{BCN, Control, Hop, NONE, QCN};
use emulation::clock::process_cpu_ns;
use std::hint::black_box;

/// The first two are what all are compared with.
const CONTROLS: [(&str, Control); 4] =
    [("none", NONE), ("none again", NONE), ("bcn", BCN), ("qcn", QCN)];
/// How often switches are made, and rounds for each time: half a minute in all.
const MAKINGS: usize = 80;
const ROUNDS: usize = 80;
/// Hops of one turn: ten samples of QCN, a millisecond.
const BATCH: u32 = 1_500;
/// Rounds whose caches are cold.
const WARM_UP: usize = 4;

/// Prints the cost of a hop with this frame of `payload` octets under each control.
pub fn compare(payload: usize, octets: &[u8]) {
    let mut costs: [Vec<f64>; CONTROLS.len()] = Default::default();
    for making in 0..MAKINGS {
        let mut hops = [const { None }; CONTROLS.len()];
        for number in 0..hops.len() {
            let which = (making + number) % hops.len();
            hops[which] = Some(Hop::new(CONTROLS[which].1));
        }
        let mut hops = hops.map(|hop| hop.expect("each is made"));
        for round in 0..WARM_UP + ROUNDS {
            for turn in 0..hops.len() {
                let which = (round + turn) % hops.len();
                let cost = batch(&mut hops[which], octets);
                if round >= WARM_UP {
                    costs[which].push(cost);
                }
            }
        }
    }
    let without: Vec<f64> = costs[0].iter().zip(&costs[1]).map(|(a, b)| (a + b) / 2.0).collect();
    for ((name, _), own) in CONTROLS.iter().zip(&costs) {
        let ratios = own.iter().zip(&without).map(|(own, without)| own / without);
        let [low, middle, high] = quartiles(ratios.collect()).map(|ratio| (ratio - 1.0) * 100.0);
        let [_, cost, _] = quartiles(own.clone());
        println!(
            "{payload} B, {name:<10}  {cost:>6.1} ns a hop  {middle:>+5.1} %  ({low:+.1} to {high:+.1} in \
             the middle half of {} rounds)",
            own.len()
        );
    }
}

/// Nanoseconds of CPU a hop.
fn batch(hop: &mut Hop, octets: &[u8]) -> f64 {
    let before = process_cpu_ns();
    for _ in 0..BATCH {
        let passed = hop.pass(black_box(octets));
        hop.recycle(passed);
    }
    (process_cpu_ns() - before) as f64 / f64::from(BATCH)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
