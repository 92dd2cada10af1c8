//! PFC: Ethernet: priority flow control.

use crate::bench::Bench;
use crate::bench::devices::RATE;
use crate::bench::devices::ethernet::{CONTROL_TIME, FRAME_TIME};
use crate::bench::line::line;
use crate::bench::packets::ethernet::data;
use crate::case::{Case, Failure, Group, Run};
use crate::live::pfc as live;
use proto::device::Device;
use proto::units::Instant;
use switchd::config::SwitchConfig;
use switchd::switch::Switch;

mod asking;
mod limits;
mod responder;
mod silence;
mod trust;
mod unmoved;

/// The group.
pub const GROUP: Group =
    Group { name: "PFC", subject: "Ethernet: priority flow control", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "PFC-01",
        title: "XOFF limit, four phases",
        source: "sonic-mgmt tests/saitests/py3/sai_qos_tests.py class PFCtest; qos_params.td3.yaml",
        note: "The end of headroom is the first frame that does not fit, as in the source. The frame that reaches the threshold is not headroom. The egress is blocked by a continuous pause: there are neither credits nor gates on Ethernet. On L with m = 0 too, and shared-pool alone: octets do not depend on the clock.",
        runs: &[Run::engine(limits::xoff_limit), Run::live(live::limits::xoff_limit)],
    },
    Case {
        id: "PFC-02",
        title: "XON limit with hysteresis",
        source: "sai_qos_tests.py PFCXonTest, XonHysteresisTest",
        note: "On L shared-pool alone.",
        runs: &[Run::engine(limits::xon_limit), Run::live(live::limits::xon_limit)],
    },
    Case {
        id: "PFC-03",
        title: "Headroom pool shared by many PGs",
        source: "sai_qos_tests.py HdrmPoolSizeTest, HdrmPoolSizeTest_withDynamicBufferCacl",
        note: "On E the pool is full to the octet: the cell is an octet. On L two frames of the pool are taken by PFC-19, which shares its run.",
        runs: &[Run::engine(limits::headroom_pool), Run::live(live::limits::headroom_pool)],
    },
    Case {
        id: "PFC-04",
        title: "Paused priority is silent, others full",
        source: "sonic-mgmt docs/testplan/pfc/PFC_PAUSE_LOSSLESS_README.md, PFC-test-plan.md case 1",
        note: "On E for 5 s of the live profile in frame times (3000).",
        runs: &[Run::engine(silence::paused_is_silent), Run::live(live::silence::paused_is_silent)],
    },
    Case {
        id: "PFC-05",
        title: "Several priorities, and all eight",
        source: "PFC-test-plan.md case 2; tmworld 2012 UNH-IOL note: early devices failed with 8 classes",
        note: "",
        runs: &[
            Run::engine(silence::independent_priorities),
            Run::live(live::silence::independent_priorities),
        ],
    },
    Case {
        id: "PFC-06",
        title: "PFC on a lossy priority is not honoured",
        source: "docs/testplan/pfc/PFC_PAUSE_LOSSY_README.md",
        note: "",
        runs: &[Run::engine(unmoved::lossy_is_deaf), Run::live(live::unmoved::lossy_is_deaf)],
    },
    Case {
        id: "PFC-07",
        title: "802.3x PAUSE is not honoured when PFC is on",
        source: "docs/testplan/pfc/GLOBAL_PAUSE_README.md",
        note: "",
        runs: &[Run::engine(unmoved::pause_is_ignored), Run::live(live::unmoved::pause_is_ignored)],
    },
    Case {
        id: "PFC-08",
        title: "Enable vector all zero",
        source: "Windows HLK QosPriorityFlowControl “EnableVectorBitsReset”; sonic-mgmt test_pfc_pause_unset_bit_enable_vector.py, test_xon_not_counted.py",
        note: "",
        runs: &[Run::engine(unmoved::empty_vector), Run::live(live::unmoved::empty_vector)],
    },
    Case {
        id: "PFC-09",
        title: "Quanta length",
        source: "802.1Q cl.36; PFC-test-plan.md",
        note: "The pause runs from the last bit of the frame that asks for it.",
        runs: &[Run::engine(silence::quanta_length), Run::live(live::silence::quanta_length)],
    },
    Case {
        id: "PFC-10",
        title: "XON releases at once",
        source: "802.3 Annex 31D",
        note: "",
        runs: &[Run::engine(silence::xon_releases), Run::live(live::silence::xon_releases)],
    },
    Case {
        id: "PFC-11",
        title: "Frame in flight completes",
        source: "802.1Q cl.36.1.3.3 (614.4 ns at line speed; scaled here)",
        note: "",
        runs: &[Run::engine(silence::frame_in_flight)],
    },
    Case {
        id: "PFC-12",
        title: "Refresh while congested",
        source: "sonic-mgmt test plans: “inter-frame transmission interval should be smaller than per-frame pause duration”",
        note: "",
        runs: &[Run::engine(asking::refresh), Run::live(live::silence::refresh)],
    },
    Case {
        id: "PFC-13",
        title: "Lost XON",
        source: "802.1Q cl.36 timer design",
        note: "On L the NIC alone, with the longest pause there is.",
        runs: &[Run::engine(asking::lost_xon), Run::live(live::silence::lost_xon)],
    },
    Case {
        id: "PFC-14",
        title: "Lost XOFF",
        source: "802.1Q Annex O headroom budget",
        note: "",
        runs: &[Run::engine(asking::lost_xoff), Run::live(live::limits::lost_xoff)],
    },
    Case {
        id: "PFC-15",
        title: "Slow responder",
        source: "docs/testplan/pfc/PFC_PAUSE_RESPONSE_HEADROOM_README.md; 802.1Q Annex O",
        note: "The text's bound counts two full frames: the one of either end that is under way. The frame of MAC control itself comes on top and lies within the tolerance. On L the neighbours are played: each sends exactly as many frames as one that obeys so late.",
        runs: &[Run::engine(responder::slow_responder), Run::live(live::limits::slow_responder)],
    },
    Case {
        id: "PFC-16",
        title: "PFC frames are never forwarded",
        source: "802.1Q reserved group address; 802.3 Annex 31",
        note: "To the port's own address it is obeyed, as IEEE 802.3 31B.3.3 allows; to any other it is dropped and counted. On L groups and other addresses; the own one is left to E.",
        runs: &[Run::engine(unmoved::never_forwarded), Run::live(live::unmoved::never_forwarded)],
    },
    Case {
        id: "PFC-17",
        title: "Zero or odd source MAC",
        source: "sonic-mgmt tests/snappi_tests/pfc/test_pfc_pause_zero_mac.py, test_valid_src_mac_pfc_frame.py",
        note: "",
        runs: &[Run::engine(unmoved::any_source), Run::live(live::unmoved::any_source)],
    },
    Case {
        id: "PFC-18",
        title: "Malformed PFC",
        source: "802.3 Annex 31A; tshark expert rules",
        note: "Reserved bits are counted (pfc_vector) and otherwise ignored. Frames have no FCS on our cables: a bad one is a frame that the cable marks as aborted.",
        runs: &[Run::engine(unmoved::malformed), Run::live(live::unmoved::malformed)],
    },
    Case {
        id: "PFC-19",
        title: "Asymmetric PFC",
        source: "sonic-mgmt tests/pfc_asym/test_pfc_asym.py",
        note: "",
        runs: &[Run::engine(asking::asymmetric), Run::live(live::limits::asymmetric)],
    },
    Case {
        id: "PFC-20",
        title: "Oversubscription 105–110 %",
        source: "docs/testplan/PFC_Congestion_Oversubscription_Test_Plan.md case 1",
        note: "Over 4 s.",
        runs: &[Run::live(live::load::oversubscription)],
    },
    Case {
        id: "PFC-21",
        title: "Lossy overload does not create PFC",
        source: "same plan, case 2",
        note: "Over 4 s.",
        runs: &[Run::live(live::load::lossy_overload)],
    },
    Case {
        id: "PFC-22",
        title: "Throttling pause to 90 %",
        source: "same plan, case 6",
        note: "Over 2 s; a pause of 10.9 ms every 100 ms, for half a frame of it goes to the one under way.",
        runs: &[Run::live(live::load::throttled_to_ninety)],
    },
    Case {
        id: "PFC-23",
        title: "Byte-exact through a PFC bottleneck",
        source: "torvalds/linux tools/testing/selftests/drivers/net/mlxsw/qos_pfc.sh (dout == din)",
        note: "On E as well: the simulator is exact about octets. On L a megabyte, which takes 4 s at 2 Mb/s.",
        runs: &[Run::engine(responder::byte_exact), Run::live(live::load::byte_exact)],
    },
    Case {
        id: "PFC-24",
        title: "Priority taken from the configured source",
        source: "libpcap#1105, rtbrick/bngblaster#326; measured here",
        note: "The kernel's PACKET_AUXDATA belongs to AF_PACKET cables, which do not exist: no tag is ever taken out of a frame here.",
        runs: &[Run::engine(trust::configured_source), Run::live(live::trust::configured_source)],
    },
];

/// The last port of the switches here, whose neighbour blocks the way out.
const FOUR: u8 = 4;

/// A switch of which nothing of `priority` gets out of port 4 for a while.
fn blocked(config: SwitchConfig, priority: u8) -> Result<Bench<Switch>, Failure> {
    let mut bench = Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?);
    bench.pfc(FOUR, 1 << priority, u16::MAX);
    Ok(bench)
}

/// Full frames from the neighbour at `port` to adapter 4, back to back; what the last one leads to has
/// been said to neighbours then.
fn send(bench: &mut Bench<Switch>, port: u8, priority: u8, count: u64) {
    let frames = (0..count).map(|psn| data(u16::from(port), u16::from(FOUR), priority, psn as u32));
    let last = bench.stream(port, bench.now(), RATE, frames);
    bench.run_until(last + CONTROL_TIME);
}

/// Port 4 may send one frame of `priority`; it has left then, and neighbours have heard of that.
fn release_one(bench: &mut Bench<Switch>, priority: u8) {
    bench.pfc(FOUR, 1 << priority, 0);
    bench.pfc(FOUR, 1 << priority, u16::MAX);
    bench.run_for(FRAME_TIME + CONTROL_TIME);
}

/// When the first bits of the frames of `priority` left `port`.
fn starts<D: Device>(bench: &Bench<D>, port: u8, priority: u8) -> Vec<Instant> {
    let sent = line(bench.data(port, priority), RATE);
    sent.iter().map(|frame| frame.start).collect()
}
