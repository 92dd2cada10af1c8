//! ROCE: RoCEv2: ECN, CNP, DCQCN.

use crate::check::case::{Case, Group, Level, Run};

/// The group.
pub const GROUP: Group = Group { name: "ROCE", subject: "RoCEv2: ECN, CNP, DCQCN", cases: CASES };

const LATER: &str = "RoCEv2 is not built yet";

const CASES: &[Case] = &[
    Case {
        id: "ROCE-01",
        title: "Below Kmin no mark, above Kmax all marked",
        source: "torvalds/linux mlxsw/sch_red_core.sh ecn_test_common",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-02",
        title: "Marking curve",
        source: "docs/testplan/ecn/ECN_ACCURACY_README.md",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "ROCE-03",
        title: "Marked share in a burst",
        source: "sai_qos_tests.py DscpEcnSend",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-04",
        title: "ECT codepoints",
        source: "RFC 3168 §5",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-05",
        title: "CE leaves ICRC valid",
        source: "Annex A17 ICRC rule",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-06",
        title: "CNP is never marked and has its class",
        source: "SONiC snappi rocev2 cnp {ecn_value: non_ect}; NIC vendor default DSCP 48",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-07",
        title: "CE on CNP/ACK does not trigger CNP",
        source: "loop avoidance; Annex A17 §17.9",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-08",
        title: "CNP pacing",
        source: "DCQCN (SIGCOMM’15) NP; vendor min_time_between_cnps",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-09",
        title: "RP cut",
        source: "DCQCN SIGCOMM’15 §3; alibaba-edu/High-Precision-Congestion-Control#52",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "ROCE-10",
        title: "Alpha decay",
        source: "DCQCN SIGCOMM’15",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "ROCE-11",
        title: "Recovery stages",
        source: "DCQCN SIGCOMM’15",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "ROCE-12",
        title: "First CNP behaviour is declared",
        source: "alibaba-edu/High-Precision-Congestion-Control#11",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-13",
        title: "Rate limiter conforms",
        source: "token bucket definition",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-14",
        title: "Two-flow fairness",
        source: "DCQCN SIGCOMM’15; seed 004",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-15",
        title: "Bad ICRC at receiver",
        source: "Annex A17; rxe_icrc.c",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "ROCE-16",
        title: "Wrong UDP port / short UDP length / fragmented IP",
        source: "Annex A17",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
];
