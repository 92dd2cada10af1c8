//! ROCE: RoCEv2: ECN, CNP, DCQCN.
//!
//! What switches mark is judged in [`marking`] and what that leaves right in [`passage`], what receivers
//! return and refuse in [`notices`], how senders obey in [`sender`] (beside a second writing-down of the
//! rules, [`crate::reference`]).

use crate::ethernet::{dcqcn, roomy, star};
use crate::prelude::*;

mod marking;
mod notices;
mod passage;
mod sender;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("ROCE-01", marking::below_and_above),
    ("ROCE-02", marking::curve),
    ("ROCE-03", marking::marked_share),
    ("ROCE-04", marking::code_points),
    ("ROCE-05", passage::integrity),
    ("ROCE-06", notices::class_of_cnp),
    ("ROCE-07", notices::marks_on_answers),
    ("ROCE-08", notices::pacing),
    ("ROCE-09", sender::cut),
    ("ROCE-10", sender::alpha_decay),
    ("ROCE-11", sender::recovery),
    ("ROCE-12", sender::first_cnp),
    ("ROCE-13", sender::rate_limiter),
    ("ROCE-14", passage::two_flows),
    ("ROCE-15", notices::bad_icrc),
    ("ROCE-16", notices::not_roce),
    ("ROCE-17", crate::laws::ethernet_nic),
];

/// The last port of the switches here: the way out.
const OUT: u8 = 4;

/// A switch of four ports with room for everything, under DCQCN with these parameters.
fn bench_of_switch(params: &str) -> Result<Bench> {
    let rest = roomy("") + &dcqcn(params);
    Stage::new(Level::Engine, &star(OUT, "1 s", "", &rest), "s0")?.bench()
}
