//! PFC: Ethernet: priority flow control.

use crate::check::case::{Case, Group, Level, Run};

/// The group.
pub const GROUP: Group =
    Group { name: "PFC", subject: "Ethernet: priority flow control", cases: CASES };

const LATER: &str = "Ethernet is not built yet";

const CASES: &[Case] = &[
    Case {
        id: "PFC-01",
        title: "XOFF limit, four phases",
        source: "sonic-mgmt tests/saitests/py3/sai_qos_tests.py class PFCtest; qos_params.td3.yaml",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-02",
        title: "XON limit with hysteresis",
        source: "sai_qos_tests.py PFCXonTest, XonHysteresisTest",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-03",
        title: "Headroom pool shared by many PGs",
        source: "sai_qos_tests.py HdrmPoolSizeTest, HdrmPoolSizeTest_withDynamicBufferCacl",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-04",
        title: "Paused priority is silent, others full",
        source: "sonic-mgmt docs/testplan/pfc/PFC_PAUSE_LOSSLESS_README.md, PFC-test-plan.md case 1",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-05",
        title: "Several priorities, and all eight",
        source: "PFC-test-plan.md case 2; tmworld 2012 UNH-IOL note: early devices failed with 8 classes",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-06",
        title: "PFC on a lossy priority is not honoured",
        source: "docs/testplan/pfc/PFC_PAUSE_LOSSY_README.md",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-07",
        title: "802.3x PAUSE is not honoured when PFC is on",
        source: "docs/testplan/pfc/GLOBAL_PAUSE_README.md",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-08",
        title: "Enable vector all zero",
        source: "Windows HLK QosPriorityFlowControl “EnableVectorBitsReset”; sonic-mgmt test_pfc_pause_unset_bit_enable_vector.py, test_xon_not_counted.py",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-09",
        title: "Quanta length",
        source: "802.1Q cl.36; PFC-test-plan.md",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-10",
        title: "XON releases at once",
        source: "802.3 Annex 31D",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-11",
        title: "Frame in flight completes",
        source: "802.1Q cl.36.1.3.3 (614.4 ns at line speed; scaled here)",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER)],
    },
    Case {
        id: "PFC-12",
        title: "Refresh while congested",
        source: "sonic-mgmt test plans: “inter-frame transmission interval should be smaller than per-frame pause duration”",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-13",
        title: "Lost XON",
        source: "802.1Q cl.36 timer design",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-14",
        title: "Lost XOFF",
        source: "802.1Q Annex O headroom budget",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-15",
        title: "Slow responder",
        source: "docs/testplan/pfc/PFC_PAUSE_RESPONSE_HEADROOM_README.md; 802.1Q Annex O",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-16",
        title: "PFC frames are never forwarded",
        source: "802.1Q reserved group address; 802.3 Annex 31",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-17",
        title: "Zero or odd source MAC",
        source: "sonic-mgmt tests/snappi_tests/pfc/test_pfc_pause_zero_mac.py, test_valid_src_mac_pfc_frame.py",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-18",
        title: "Malformed PFC",
        source: "802.3 Annex 31A; tshark expert rules",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-19",
        title: "Asymmetric PFC",
        source: "sonic-mgmt tests/pfc_asym/test_pfc_asym.py",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-20",
        title: "Oversubscription 105–110 %",
        source: "docs/testplan/PFC_Congestion_Oversubscription_Test_Plan.md case 1",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-21",
        title: "Lossy overload does not create PFC",
        source: "same plan, case 2",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-22",
        title: "Throttling pause to 90 %",
        source: "same plan, case 6",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-23",
        title: "Byte-exact through a PFC bottleneck",
        source: "torvalds/linux tools/testing/selftests/drivers/net/mlxsw/qos_pfc.sh (dout == din)",
        note: "",
        runs: &[Run::missing(Level::Live, LATER)],
    },
    Case {
        id: "PFC-24",
        title: "Priority taken from the configured source",
        source: "libpcap#1105, rtbrick/bngblaster#326; measured here",
        note: "",
        runs: &[Run::missing(Level::Engine, LATER), Run::missing(Level::Live, LATER)],
    },
];
