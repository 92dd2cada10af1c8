//! Conformance: what switches and NICs must do, as cases with ids that never change.
//!
//! `cases.toml` is the register: id, levels, title, source and note of each case. [`cases`] reads it and names the
//! script of each id, one file a group.
//! [`suite`] chooses cases and runs them, [`report`] formats what came out, [`statement`] writes the
//! statement of conformance.
//!
//! Each case is one script for all its levels. It takes the level and returns a finding:
//!
//! | level | what the script runs | tolerance |
//! |---|---|---|
//! | C | encoders and decoders on octets | exact |
//! | E | a device as a value on the virtual clock, or a whole fabric in the simulator | exact |
//! | L | the same device in a daemon, or the same fabric of daemons, in wall-clock time | that of the case |
//!
//! Most scripts have three parts:
//!
//! 1. **Configure.** A scenario's text, mostly that of the [`star`], of [`ethernet`] or InfiniBand.
//! 2. **Play.** On a [`stage`] stands one device of the scenario; all its neighbours are played. The script
//!    is a list of steps at instants of fabric time, `script.at(ms(120), |bed| bed.pfc(4, 0xff, LONG))`. The
//!    words of a step are the methods of [`testbed::Bed`]: send a frame, damaged or late or twice; enqueue
//!    one until line and credit permit it; pause priorities; offer, withhold or lose credit; train a link
//!    anew. The driver of the virtual clock is [`testbed::Bench`], that of live daemons a tester that plays
//!    the neighbours over real cables. A [`fabric`] has no played neighbours: the scenario's own adapters send.
//! 3. **Judge.** The stage leaves a [`record`]: every frame that the device has sent with its instant, its
//!    events, its counters and losses. `record.within(slack)` is the tolerance of an instant: nothing on the
//!    virtual clock; live the slack of the case and twice the lateness of the run.
//!
//! Many cases in one form are rows of a table: [`stimulus`] sends packets in time slots of their own and
//! compares what became of each. One run serves several cases on each level: it is [`shared`]. A step that
//! only one level can do (a sweep of other parameters on the virtual clock, a daemon that is stopped) is a
//! branch on the level inside the same script. A live case is inconclusive when its run's own fidelity
//! verdict is, and never otherwise.

pub mod case;
pub mod cases;
pub mod ethernet;
pub mod fabric;
mod laws;
mod odd;
mod prelude;
pub mod record;
mod reference;
pub mod report;
mod samples;
pub mod shared;
pub mod stage;
pub mod star;
pub mod statement;
pub mod stepped_clock;
pub mod stimulus;
pub mod suite;
pub mod watched;
