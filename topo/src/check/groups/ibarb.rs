//! IBARB: InfiniBand: SL/VL and arbitration.

use crate::check::case::{Case, Group, Level, Run};
use crate::check::live;

/// The group.
pub const GROUP: Group =
    Group { name: "IBARB", subject: "InfiniBand: SL/VL and arbitration", cases: CASES };

const LATER: &str = "not written yet";

const CASES: &[Case] = &[
    Case {
        id: "IBARB-01",
        title: "SL→VL map",
        source: "IBA §7.6.6",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibarb::service_levels)],
    },
    Case {
        id: "IBARB-02",
        title: "Low table weights",
        source: "IBA §7.6.9; weights in 64-octet units",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibarb::low_weights)],
    },
    Case {
        id: "IBARB-03",
        title: "High table precedence and limit",
        source: "IBA §7.6.9 LimitOfHighPriority",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibarb::high_limit)],
    },
    Case {
        id: "IBARB-04",
        title: "Weight 0 entry is skipped",
        source: "IBA §7.6.9",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBARB-05",
        title: "Blocked VL does not block others",
        source: "IBA §7.6",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibfc::blocked_lane)],
    },
];
