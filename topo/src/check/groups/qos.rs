//! QOS: queues, buffers, scheduling.

use crate::check::case::{Case, Group, Level, Run};

/// The group.
pub const GROUP: Group =
    Group { name: "QOS", subject: "Queues, buffers, scheduling", cases: CASES };

const LATER: &str = "Ethernet is not built yet";

const CASES: &[Case] = &[
    Case {
        id: "QOS-01",
        title: "DSCP → queue, all 64",
        source: "sai_qos_tests.py DscpMappingPB",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-02",
        title: "DSCP → priority group, PCP → queue/PG",
        source: "DscpToPgMapping, Dot1pToQueueMapping, Dot1pToPgMapping",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-03",
        title: "DWRR shares",
        source: "WRRtest + qos_params.td3.yaml wrr; torvalds/linux net/forwarding/sch_ets_tests.sh",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-04",
        title: "Strict priority",
        source: "sch_ets_tests.sh; UNH-IOL ETS 37.1.7",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-05",
        title: "Bandwidth sharing",
        source: "UNH-IOL 802.1Qaz ETS 37.1.1–37.1.5",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-06",
        title: "Lossy queue limit",
        source: "LossyQueueTest",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-07",
        title: "Shared buffer and min reserve",
        source: "PgMinThresholdTest, SharedResSizeTest",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-08",
        title: "Watermarks",
        source: "PGSharedWatermarkTest, PGHeadroomWatermarkTest, QSharedWatermarkTest, BufferPoolWatermarkTest",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-09",
        title: "Lossless never tail-drops or WRED-drops",
        source: "sonic-buildimage#27606",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-10",
        title: "Zero headroom rejected",
        source: "sonic-net/SONiC#480",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "QOS-11",
        title: "Full mesh sanity",
        source: "FullMeshTrafficSanity, TrafficSanityTest",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
];
