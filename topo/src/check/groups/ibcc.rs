//! IBCC: InfiniBand: FECN, BECN, congestion table.

use crate::check::case::{Case, Group, Level, Run};
use crate::check::live;

/// The group.
pub const GROUP: Group =
    Group { name: "IBCC", subject: "InfiniBand: FECN, BECN, congestion table", cases: CASES };

const LATER: &str = "not written yet";

const CASES: &[Case] = &[
    Case {
        id: "IBCC-01",
        title: "Threshold 0 = never mark",
        source: "Annex A10; seed 000 §IV.A",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::threshold_zero)],
    },
    Case {
        id: "IBCC-02",
        title: "Threshold scale is monotonic",
        source: "Annex A10; seed 000",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBCC-03",
        title: "Root, not victim",
        source: "Annex A10; seeds 000 and 001 (root = over threshold and credits available)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::root_not_victim)],
    },
    Case {
        id: "IBCC-04",
        title: "Packet_Size filter",
        source: "Annex A10; seed 000 “packets smaller than a configurable packet size are not marked”",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::packet_size)],
    },
    Case {
        id: "IBCC-05",
        title: "FECN is never cleared",
        source: "Annex A10; seed 000 “FECN bits are passed through unchanged by all switches”",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::never_cleared)],
    },
    Case {
        id: "IBCC-06",
        title: "BECN return on RC",
        source: "Annex A10; seed 000",
        note: "",
        runs: &[
            Run::missing(Level::Engine, LATER),
            Run::live(live::ibcc::nic::on_acknowledgements),
        ],
    },
    Case {
        id: "IBCC-07",
        title: "CN on non-ACK services",
        source: "Annex A10 §10.3.2",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::nic::as_notifications)],
    },
    Case {
        id: "IBCC-08",
        title: "No reply to CN, ACK, multicast",
        source: "Annex A10 (text to be checked); avoids loops",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::nic::no_answer)],
    },
    Case {
        id: "IBCC-09",
        title: "CCTI arithmetic",
        source: "Annex A10; seed 000 “Injection Rate Reduction”",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBCC-10",
        title: "Recovery timer",
        source: "Annex A10 CCTI_Timer (step per expiry to be checked: spec text vs seed 000 “reduced by an amount also set by the CCM”)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBCC-11",
        title: "Every eligible packet when Marking_Rate is 0",
        source: "Annex A10 switch congestion setting",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::every_eligible_packet)],
    },
    Case {
        id: "IBCC-12",
        title: "IPD value",
        source: "Annex A10 CCT entry",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::nic::packet_delay)],
    },
    Case {
        id: "IBCC-13",
        title: "IPD does not bank idle time",
        source: "rate-limiter sanity",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "IBCC-14",
        title: "QP scope vs SL scope",
        source: "seed 000 “either to the specific queue pair … or to all QPs on the port using a particular SL”",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::nic::scope)],
    },
    Case {
        id: "IBCC-15",
        title: "Trigger threshold event",
        source: "Annex A10 CA congestion log",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::live(live::ibcc::nic::trigger)],
    },
    Case {
        id: "IBCC-16",
        title: "Hot spot with and without CC",
        source: "seed 000 Table 1 case 4; Fig. 3",
        note: "",
        runs: &[Run::live(live::fabrics::hot_spot)],
    },
];
