//! IBFC: InfiniBand: link credits.

use crate::check::case::{Case, Group, Level, Run};
use crate::check::live::{fabrics, ibfc as live};

/// The group.
pub const GROUP: Group = Group { name: "IBFC", subject: "InfiniBand: link credits", cases: CASES };

const LATER: &str = "not written yet";

const CASES: &[Case] = &[
    Case {
        id: "IBFC-01",
        title: "FCCL formula",
        source: "IBA §7.9.4; same rule in IBTrainer manual p.28",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBFC-02",
        title: "ABR rules",
        source: "IBA §7.9.4; IBTrainer manual p.28",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBFC-03",
        title: "Transmit gate",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBFC-04",
        title: "Block rounding",
        source: "IBA §7.9.4; shared/spec/algorithms.md §1.1 counts LRH first octet to VCRC last octet",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::block_rounding)],
    },
    Case {
        id: "IBFC-05",
        title: "No credit, no data",
        source: "IBA §7.9; PortXmitWait in perf counters",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::no_credit)],
    },
    Case {
        id: "IBFC-06",
        title: "Refresh interval",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::refresh)],
    },
    Case {
        id: "IBFC-07",
        title: "Init op on link up",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::initialization)],
    },
    Case {
        id: "IBFC-08",
        title: "Flow-control watchdog",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::watchdog_bites)],
    },
    Case {
        id: "IBFC-09",
        title: "Lost FC packet",
        source: "IBA §7.9.4 (absolute, not incremental credits)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::lost_flow_control)],
    },
    Case {
        id: "IBFC-10",
        title: "Duplicate / reordered FC packet",
        source: "own link layer rule; needed because FCCL is absolute",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::old_flow_control)],
    },
    Case {
        id: "IBFC-11",
        title: "Bad LPCRC",
        source: "IBA §7.9.4, link packet check",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::damaged_flow_control)],
    },
    Case {
        id: "IBFC-12",
        title: "VL15 has no credits",
        source: "IBA §7.6.3, §7.9",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::management_lane)],
    },
    Case {
        id: "IBFC-13",
        title: "Incast 3→1 without loss",
        source: "IBA losslessness; seeds (Pfister et al. hot-spot workload)",
        note: "",
        runs: &[Run::live(fabrics::incast_without_loss)],
    },
];
