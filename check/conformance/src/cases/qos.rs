//! QOS: queues, buffers, scheduling.
//!
//! Which queue a frame joins is judged in [`maps`], how queues share a line in [`shares`], how much may
//! wait in [`room`], and a whole fabric of it in [`mesh`].

use crate::case::Scripts;

mod maps;
mod mesh;
mod room;
mod shares;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("QOS-01", maps::dscp_to_queue),
    ("QOS-02", maps::to_priority_group),
    ("QOS-03", shares::dwrr_shares),
    ("QOS-04", shares::strict_priority),
    ("QOS-05", shares::idle_share),
    ("QOS-06", room::lossy_queue_limit),
    ("QOS-07", room::reserve),
    ("QOS-08", room::watermarks_stay),
    ("QOS-09", room::lossless_is_never_dropped),
    ("QOS-10", room::zero_headroom),
    ("QOS-11", mesh::full_mesh),
];

/// The last port of the switches here: the way out.
const OUT: u8 = 4;
