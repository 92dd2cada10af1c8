//! IBCC: InfiniBand: FECN, BECN, congestion table.
//!
//! What switches mark is judged in [`marking`], what NICs return and how they obey in [`nic`], with more of it
//! on the virtual clock in [`returns`] and [`pacing`]; what comes of it all in [`hot_spot`].

use crate::case::Scripts;

mod account;
mod hot_spot;
mod marking;
mod nic;
mod pacing;
pub mod returns;

pub use marking::marks_keep_icrc;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("IBCC-01", marking::threshold_zero),
    ("IBCC-02", account::threshold_scale),
    ("IBCC-03", marking::root_not_victim),
    ("IBCC-04", marking::packet_size),
    ("IBCC-05", marking::never_cleared),
    ("IBCC-06", nic::on_acknowledgements),
    ("IBCC-07", nic::as_notifications),
    ("IBCC-08", nic::no_answer),
    ("IBCC-09", pacing::index_arithmetic),
    ("IBCC-10", pacing::recovery_timer),
    ("IBCC-11", marking::every_eligible_packet),
    ("IBCC-12", nic::packet_delay),
    ("IBCC-13", pacing::no_banked_time),
    ("IBCC-14", nic::scope),
    ("IBCC-15", nic::trigger),
    ("IBCC-16", hot_spot::hot_spot),
    ("IBCC-17", crate::laws::infiniband_nic),
];
