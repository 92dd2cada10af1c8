//! IBRX: InfiniBand: receive checks and relay.

use crate::check::case::{Case, Group, Level, Run};
use crate::check::live::ibrx as live;

/// The group.
pub const GROUP: Group =
    Group { name: "IBRX", subject: "InfiniBand: receive checks and relay", cases: CASES };

const LATER: &str = "not written yet";

const CASES: &[Case] = &[
    Case {
        id: "IBRX-01",
        title: "Bad VCRC is discarded",
        source: "IBTA test spec via CATC IBTrainer manual p.80: TD_10.2.4.1.1 / TD_10.3.1.1.1, assertions v1c07-007#01.01, v1c07-009#01.01",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::bad_vcrc)],
    },
    Case {
        id: "IBRX-02",
        title: "Bad ICRC reaches the end node and dies there",
        source: "IBA §7.8.1; IBTrainer p.77 TD_10.2.4.1.2, v1c07-007#01.02",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::bad_icrc)],
    },
    Case {
        id: "IBRX-03",
        title: "PktLen disagrees with length",
        source: "IBTrainer p.85 BadPktLen, v1c07-007#01.04, v1c07-009#01.04",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::packet_length)],
    },
    Case {
        id: "IBRX-04",
        title: "Payload above port MTU",
        source: "IBA §7.4/7.7 packet checks; DPDK dts TestSuite_mtu does the ± boundary test",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::mtu)],
    },
    Case {
        id: "IBRX-05",
        title: "VL not operational",
        source: "IBA §7.6 (VL use and checks)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::lane)],
    },
    Case {
        id: "IBRX-06",
        title: "DLID unknown, 0, permissive, multicast",
        source: "IBA §4.1 address ranges, §7.11 switch relay",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::destination)],
    },
    Case {
        id: "IBRX-07",
        title: "Link state filter",
        source: "IBA §7.2 link state machine; IBTrainer p.90 v1c07-001#07, #14",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::link_state)],
    },
    Case {
        id: "IBRX-08",
        title: "Aborted packet marker",
        source: "IBTrainer p.29, p.82 TD_10.2.4.1.9 (EBP / wrong end delimiter), v1c07-007#02",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::aborted)],
    },
    Case {
        id: "IBRX-09",
        title: "FECN change recomputes VCRC only",
        source: "IBA §7.8: ICRC excludes Resv8a and VL, VCRC covers them",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::relabelled)],
    },
];
