//! PFCWD: Ethernet: PFC watchdog and deadlock.

use crate::check::case::{Case, Group, Level, Run};

/// The group.
pub const GROUP: Group =
    Group { name: "PFCWD", subject: "Ethernet: PFC watchdog and deadlock", cases: CASES };

const LATER: &str = "Ethernet is not built yet";

const CASES: &[Case] = &[
    Case {
        id: "PFCWD-01",
        title: "Short storm",
        source: "docs/testplan/pfcwd/PFCWD_2SENDER_2RECEIVER.md",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-02",
        title: "Long storm, drop action",
        source: "same; tests/pfcwd/test_pfcwd_function.py; sonic-buildimage#23444",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-03",
        title: "Long storm, forward action",
        source: "PFC_Snappi_Additional_Testcases.md #11",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-04",
        title: "Detect and restore time",
        source: "tests/pfcwd/test_pfcwd_timer_accuracy.py (20 iterations, checks a middle sample)",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-05",
        title: "Detection needs a blocked backlog",
        source: "sonic-swss#3036 (false alarms: require backlog, no tx, ≥ 99 % paused)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-06",
        title: "Time charged is time elapsed",
        source: "sonic-swss orchagent/pfc_restore.lua comment, sairedis#2071",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "PFCWD-07",
        title: "Clean after restore",
        source: "sonic-buildimage#5898 (residual drop rule)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-08",
        title: "Link down is not a storm",
        source: "sonic-swss#1523; sonic-mgmt#14205",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-09",
        title: "Cyclic buffer dependency found before start",
        source: "opareport validatecreditloops (cornelisnetworks/opa-ff#6); tenstorrent/tt-metal#28207",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFCWD-10",
        title: "Deadlock seen at run time",
        source: "sonic-mgmt#20841 (PCBB deadlock test); tt-metal#54650 (silent credit hang)",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
];
