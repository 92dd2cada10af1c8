//! PFC: Ethernet: priority flow control.

use crate::case::cases;
use crate::ethernet::FRAME_TIME;
use crate::prelude::*;

mod limits;
mod load;
mod silence;
mod trust;
mod unmoved;

cases! { "PFC", "Ethernet: priority flow control";
    "PFC-01" both(limits::xoff_limit), "XOFF limit, four phases",
        "sonic-mgmt tests/saitests/py3/sai_qos_tests.py class PFCtest; qos_params.td3.yaml",
        "The end of headroom is the first frame that does not fit, as in the source. The frame that reaches the threshold is not headroom. The egress is blocked by a continuous pause: there are neither credits nor gates on Ethernet. On L with m = 0 too, and shared-pool alone: octets do not depend on the clock.";
    "PFC-02" both(limits::xon_limit), "XON limit with hysteresis",
        "sai_qos_tests.py PFCXonTest, XonHysteresisTest",
        "On L shared-pool alone.";
    "PFC-03" both(limits::headroom_pool), "Headroom pool shared by many PGs",
        "sai_qos_tests.py HdrmPoolSizeTest, HdrmPoolSizeTest_withDynamicBufferCacl",
        "On E the pool is full to the octet: the cell is an octet. On L two frames of the pool are taken by PFC-19, which shares its run.";
    "PFC-04" both(silence::paused_is_silent), "Paused priority is silent, others full",
        "sonic-mgmt docs/testplan/pfc/PFC_PAUSE_LOSSLESS_README.md, PFC-test-plan.md case 1",
        "On E for 5 s of the live profile in frame times (3000).";
    "PFC-05" both(silence::independent_priorities), "Several priorities, and all eight",
        "PFC-test-plan.md case 2; tmworld 2012 UNH-IOL note: early devices failed with 8 classes";
    "PFC-06" both(unmoved::lossy_is_deaf), "PFC on a lossy priority is not honoured",
        "docs/testplan/pfc/PFC_PAUSE_LOSSY_README.md";
    "PFC-07" both(unmoved::pause_is_ignored), "802.3x PAUSE is not honoured when PFC is on",
        "docs/testplan/pfc/GLOBAL_PAUSE_README.md";
    "PFC-08" both(unmoved::empty_vector), "Enable vector all zero",
        "Windows HLK QosPriorityFlowControl “EnableVectorBitsReset”; sonic-mgmt test_pfc_pause_unset_bit_enable_vector.py, test_xon_not_counted.py";
    "PFC-09" both(silence::quanta_length), "Quanta length",
        "802.1Q cl.36; PFC-test-plan.md",
        "The pause runs from the last bit of the frame that asks for it.";
    "PFC-10" both(silence::xon_releases), "XON releases at once",
        "802.3 Annex 31D";
    "PFC-11" engine(silence::frame_in_flight), "Frame in flight completes",
        "802.1Q cl.36.1.3.3 (614.4 ns at line speed; scaled here)";
    "PFC-12" both(silence::refresh), "Refresh while congested",
        "sonic-mgmt test plans: “inter-frame transmission interval should be smaller than per-frame pause duration”";
    "PFC-13" both(silence::lost_xon), "Lost XON",
        "802.1Q cl.36 timer design",
        "On L the NIC alone, with the longest pause there is.";
    "PFC-14" both(limits::lost_xoff), "Lost XOFF",
        "802.1Q Annex O headroom budget";
    "PFC-15" both(limits::slow_responder), "Slow responder",
        "docs/testplan/pfc/PFC_PAUSE_RESPONSE_HEADROOM_README.md; 802.1Q Annex O",
        "The text's bound counts two full frames: the one of either end that is under way. The frame of MAC control itself comes on top and lies within the tolerance. The neighbours are played: each sends exactly as many frames as one that obeys so late; on E a NIC that obeys late is swept too.";
    "PFC-16" both(unmoved::never_forwarded), "PFC frames are never forwarded",
        "802.1Q reserved group address; 802.3 Annex 31",
        "To the port's own address it is obeyed, as IEEE 802.3 31B.3.3 allows; to any other it is dropped and counted.";
    "PFC-17" both(unmoved::any_source), "Zero or odd source MAC",
        "sonic-mgmt tests/snappi_tests/pfc/test_pfc_pause_zero_mac.py, test_valid_src_mac_pfc_frame.py";
    "PFC-18" both(unmoved::malformed), "Malformed PFC",
        "802.3 Annex 31A; tshark expert rules",
        "Reserved bits are counted (pfc_vector) and otherwise ignored. Frames have no FCS on our cables: a bad one is a frame that the cable marks as aborted.";
    "PFC-19" both(limits::asymmetric), "Asymmetric PFC",
        "sonic-mgmt tests/pfc_asym/test_pfc_asym.py";
    "PFC-20" live(load::oversubscription), "Oversubscription 105–110 %",
        "docs/testplan/PFC_Congestion_Oversubscription_Test_Plan.md case 1",
        "Over 4 s.";
    "PFC-21" live(load::lossy_overload), "Lossy overload does not create PFC",
        "same plan, case 2",
        "Over 4 s.";
    "PFC-22" live(load::throttled_to_ninety), "Throttling pause to 90 %",
        "same plan, case 6",
        "Over 2 s; a pause of 10.9 ms every 100 ms, for half a frame of it goes to the one under way.";
    "PFC-23" both(load::byte_exact), "Byte-exact through a PFC bottleneck",
        "torvalds/linux tools/testing/selftests/drivers/net/mlxsw/qos_pfc.sh (dout == din)",
        "On E as well: the simulator is exact about octets. On L a megabyte, which takes 4 s at 2 Mb/s.";
    "PFC-24" both(trust::configured_source), "Priority taken from the configured source",
        "libpcap#1105, rtbrick/bngblaster#326; measured here",
        "The kernel's PACKET_AUXDATA belongs to AF_PACKET cables, which do not exist: no tag is ever taken out of a frame here.";
}

/// Whether frames left `port` back to back in `[from, to)`: how many, and the longest gap in ns.
fn back_to_back(record: &Record, port: u8, from: Instant, to: Instant) -> (usize, u64) {
    let times: Vec<Instant> = record.between(port, from, to).map(|seen| seen.at).collect();
    let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]).as_ps());
    let longest = gaps.max().unwrap_or(0).saturating_sub(FRAME_TIME.as_ps());
    (times.len(), longest / 1_000)
}
