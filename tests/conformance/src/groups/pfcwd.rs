//! PFCWD: Ethernet: PFC watchdog and deadlock.

use crate::case::{Case, Group, Run};
use crate::live::pfcwd as live;

pub mod circles;
mod storms;

/// The group.
pub const GROUP: Group =
    Group { name: "PFCWD", subject: "Ethernet: PFC watchdog and deadlock", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "PFCWD-01",
        title: "Short storm",
        source: "docs/testplan/pfcwd/PFCWD_2SENDER_2RECEIVER.md",
        note: "",
        runs: &[Run::engine(storms::short), Run::live(live::short)],
    },
    Case {
        id: "PFCWD-02",
        title: "Long storm, drop action",
        source: "same; tests/pfcwd/test_pfcwd_function.py; sonic-buildimage#23444",
        note: "Detected later than T_detect and at most a poll after it, from the beginning of a storm that begins between two polls.",
        runs: &[Run::engine(storms::dropping), Run::live(live::dropping)],
    },
    Case {
        id: "PFCWD-03",
        title: "Long storm, forward action",
        source: "PFC_Snappi_Additional_Testcases.md #11",
        note: "",
        runs: &[Run::engine(storms::forwarding), Run::live(live::forwarding)],
    },
    Case {
        id: "PFCWD-04",
        title: "Detect and restore time",
        source: "tests/pfcwd/test_pfcwd_timer_accuracy.py (20 iterations, checks a middle sample)",
        note: "T_detect and T_restore are 40 ms, a look every 10 ms.",
        runs: &[Run::live(live::timing)],
    },
    Case {
        id: "PFCWD-05",
        title: "Detection needs a blocked backlog",
        source: "sonic-swss#3036 (false alarms: require backlog, no tx, ≥ 99 % paused)",
        note: "",
        runs: &[Run::engine(storms::needs_a_backlog), Run::live(live::needs_a_backlog)],
    },
    Case {
        id: "PFCWD-06",
        title: "Time charged is time elapsed",
        source: "sonic-swss orchagent/pfc_restore.lua comment, sairedis#2071",
        note: "A poll that is late by k periods charges all of them at once, to detection and to restoration alike.",
        runs: &[Run::engine(storms::elapsed_time)],
    },
    Case {
        id: "PFCWD-07",
        title: "Clean after restore",
        source: "sonic-buildimage#5898 (residual drop rule)",
        note: "",
        runs: &[Run::engine(storms::clean_afterwards), Run::live(live::clean_afterwards)],
    },
    Case {
        id: "PFCWD-08",
        title: "Link down is not a storm",
        source: "sonic-swss#1523; sonic-mgmt#14205",
        note: "An outage is written down in the configuration of a port. A link that is down takes nothing (link_state) and sends nothing; what waits is kept.",
        runs: &[Run::engine(storms::link_down), Run::live(live::link::is_no_storm)],
    },
    Case {
        id: "PFCWD-09",
        title: "Cyclic buffer dependency found before start",
        source: "opareport validatecreditloops (cornelisnetworks/opa-ff#6); tenstorrent/tt-metal#28207",
        note: "The cycle is a warning of every command where links are listed by hand (there it may be meant) and a fault in a tree; there is no key allow_cycles. It is named port by port; priorities do not matter, for all of them go one way. On L the same of a run with daemons, told before one is started.",
        runs: &[
            Run::engine(circles::found_before_start),
            Run::live(circles::found_before_start_live),
        ],
    },
    Case {
        id: "PFCWD-10",
        title: "Deadlock seen at run time",
        source: "sonic-mgmt#20841 (PCBB deadlock test); tt-metal#54650 (silent credit hang)",
        note: "On E as well. An output that has been held without a break for four bins of the recording takes part; an input waits for those outputs of its switch to which some route leads from it. On L 40 Gb/s slowed down 4000 times: a bin is 80 ms of the wall.",
        runs: &[Run::engine(circles::seen_at_run_time), Run::live(live::ring::seen_at_run_time)],
    },
];
