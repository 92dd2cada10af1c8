//! A NIC of a lab and Linux with soft-RoCE in a virtual machine, at the two ends of real daemons: the verbs, and the
//! programs of rdma-core and perftest. Without an image (`pausebed vm build`) or QEMU the tests are skipped.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "foreign/bench.rs"]
mod bench;
#[path = "foreign/campaign.rs"]
mod campaign;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of netns.rs use more of it")]
mod objects;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "foreign/programs.rs"]
mod programs;
#[path = "foreign/verbs.rs"]
mod verbs_of_both;
