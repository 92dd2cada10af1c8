//! QCN: 802.1Qau: QCN.

use crate::check::case::{Case, Group, Level, Run};

/// The group.
pub const GROUP: Group = Group { name: "QCN", subject: "802.1Qau: QCN", cases: CASES };

const LATER: &str = "QCN is not built yet";

const CASES: &[Case] = &[
    Case {
        id: "QCN-01",
        title: "Feedback value",
        source: "802.1Qau cl.32.8–32.9; UNH-IOL 33.1.3; seed 002",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-02",
        title: "Sampling interval",
        source: "802.1Qau cl.32.8; UNH-IOL 32.3.3 random initialisation",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-03",
        title: "CNM only for congestion-controlled frames",
        source: "802.1Qau cl.31, 33; UNH-IOL group 3",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QCN-04",
        title: "QOffset and QDelta fields",
        source: "UNH-IOL 33.1.5, 33.1.6",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-05",
        title: "CPID",
        source: "UNH-IOL 33.1.4",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QCN-06",
        title: "Version / reserved bits",
        source: "UNH-IOL 33.1.1, 33.1.2, 33.1.13",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QCN-07",
        title: "CN-TAG removal at the edge",
        source: "UNH-IOL 31.2.3, 33.2.4, 32.2.6",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QCN-08",
        title: "Defence modes",
        source: "802.1Qau cl.32.1; UNH-IOL 32.3.4, 32.3.5, 32.3.7",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-09",
        title: "RP decrease",
        source: "802.1Qau cl.32.10–32.12 (Gd = 1/128, MinDecFac 0.5)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-10",
        title: "RP recovery",
        source: "802.1Qau cl.32.10–32.15 defaults",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "QCN-11",
        title: "Stability at the set point",
        source: "seed 003 (BCN sensitivity), 802.1Qau goals",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QCN-12",
        title: "CNM priority",
        source: "802.1Qau cl.32.1",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
];
