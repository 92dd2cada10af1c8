//! IBCC: InfiniBand: FECN, BECN, congestion table.
//!
//! What switches mark is tested in [`marking`], what NICs return in [`returns`], how senders obey in
//! [`pacing`].

use crate::case::{Case, Group, Run};
use crate::live;

mod marking;
mod pacing;
mod returns;

/// The group.
pub const GROUP: Group =
    Group { name: "IBCC", subject: "InfiniBand: FECN, BECN, congestion table", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "IBCC-01",
        title: "Threshold 0 = never mark",
        source: "Annex A10; seed 000 §IV.A",
        note: "",
        runs: &[
            Run::engine(marking::threshold_zero_never_marks),
            Run::live(live::ibcc::threshold_zero),
        ],
    },
    Case {
        id: "IBCC-02",
        title: "Threshold scale is monotonic",
        source: "Annex A10; seed 000",
        note: "A10 leaves the scale to the vendor: Threshold k is a fill of 0.90 − 0.06·(k − 1) of one input buffer, whole 64-octet blocks, summed over all inputs of the output's lane; a packet is above it if it finds more when it becomes first of its queue.",
        runs: &[Run::engine(marking::each_threshold_step_marks_earlier)],
    },
    Case {
        id: "IBCC-03",
        title: "Root, not victim",
        source: "Annex A10; seeds 000 and 001 (root = over threshold and credits available)",
        note: "Judged when a packet becomes first of its queue (on arrival, or when its predecessor has left): a victim is one whose port had to wait for credit while the predecessor was first, or has none for the packet itself. At the instant of departure credit is always there.",
        runs: &[
            Run::engine(marking::a_root_is_marked_and_a_victim_only_under_the_mask),
            Run::live(live::ibcc::root_not_victim),
        ],
    },
    Case {
        id: "IBCC-04",
        title: "Packet_Size filter",
        source: "Annex A10; seed 000 “packets smaller than a configurable packet size are not marked”",
        note: "Packet_Size counts octets LRH to VCRC, in units of 64. ACK, CN, link and VL15 packets are never marked whatever Packet_Size says: nobody would answer them.",
        runs: &[
            Run::engine(marking::packets_below_packet_size_are_not_marked),
            Run::live(live::ibcc::packet_size),
        ],
    },
    Case {
        id: "IBCC-05",
        title: "FECN is never cleared",
        source: "Annex A10; seed 000 “FECN bits are passed through unchanged by all switches”",
        note: "",
        runs: &[
            Run::engine(marking::a_switch_never_clears_fecn),
            Run::live(live::ibcc::never_cleared),
        ],
    },
    Case {
        id: "IBCC-06",
        title: "BECN return on RC",
        source: "Annex A10; seed 000",
        note: "Coalescing rule: an acknowledgement carries one BECN if any packet it newly confirms was marked; so with ack_every 1 each marked packet returns one. A NAK and the repeated ACK of a duplicate carry it too; a marked packet that draws no acknowledgement (a further one ahead of a gap) draws a CN.",
        runs: &[
            Run::engine(returns::each_marked_packet_returns_one_becn_on_its_acknowledgement),
            Run::live(live::ibcc::nic::on_acknowledgements),
        ],
    },
    Case {
        id: "IBCC-07",
        title: "CN on non-ACK services",
        source: "Annex A10 §10.3.2",
        note: "The CN goes to the queue pair that UD names in its DETH and UC has by connection, on the service level of the receiving queue pair's own connection and the lane that level has here. Body of 16 zero octets, or none (cnp_body).",
        runs: &[
            Run::engine(returns::a_service_without_acknowledgements_returns_a_packet),
            Run::live(live::ibcc::nic::as_notifications),
        ],
    },
    Case {
        id: "IBCC-08",
        title: "No reply to CN, ACK, multicast",
        source: "Annex A10 (text to be checked); avoids loops",
        note: "Never answered, and so never a cause of BECN: acknowledgements of any kind, CN, multicast, VL15, and packets refused before their queue pair is known (ICRC, partition, key, queue pair).",
        runs: &[
            Run::engine(returns::answers_and_groups_are_never_answered),
            Run::live(live::ibcc::nic::no_answer),
        ],
    },
    Case {
        id: "IBCC-09",
        title: "CCTI arithmetic",
        source: "Annex A10; seed 000 “Injection Rate Reduction”",
        note: "CCTI starts at CCTI_Min, so the rule is min(CCTI_Limit, CCTI_Min + n·i). CCTI_Limit is further bounded by the last entry of the table.",
        runs: &[Run::engine(pacing::becns_raise_the_index_by_the_increase_up_to_the_limit)],
    },
    Case {
        id: "IBCC-10",
        title: "Recovery timer",
        source: "Annex A10 CCTI_Timer (step per expiry to be checked: spec text vs seed 000 “reduced by an amount also set by the CCM”)",
        note: "One step of 1 a period, as in A10, which has no field for the amount that seed 000 mentions. The timer runs from the BECN that found it idle; later BECNs do not restart it. CCTI_Timer 0: the index never falls.",
        runs: &[Run::engine(pacing::the_timer_lowers_the_index_by_one_a_period_to_the_minimum)],
    },
    Case {
        id: "IBCC-11",
        title: "Every eligible packet when Marking_Rate is 0",
        source: "Annex A10 switch congestion setting",
        note: "Marking_Rate n is read as the mean number of eligible packets that pass unmarked between two marks: every (n + 1)-th is marked, with a random phase.",
        runs: &[
            Run::engine(marking::at_marking_rate_zero_every_eligible_packet_is_marked),
            Run::live(live::ibcc::every_eligible_packet),
        ],
    },
    Case {
        id: "IBCC-12",
        title: "IPD value",
        source: "Annex A10 CCT entry",
        note: "Packet time: octets LRH to VCRC at the link's data rate, to the nearest picosecond; the shift cuts its fraction off. The delay runs from the last bit of a packet to the first bit of the flow's next, and follows the packet just sent. Link packets and other flows may still have the line when it is over.",
        runs: &[
            Run::engine(pacing::the_gap_after_a_packet_is_its_time_shifted_and_multiplied),
            Run::live(live::ibcc::nic::packet_delay),
        ],
    },
    Case {
        id: "IBCC-13",
        title: "IPD does not bank idle time",
        source: "rate-limiter sanity",
        note: "",
        runs: &[Run::engine(pacing::a_second_of_idle_time_buys_no_burst)],
    },
    Case {
        id: "IBCC-14",
        title: "QP scope vs SL scope",
        source: "seed 000 “either to the specific queue pair … or to all QPs on the port using a particular SL”",
        note: "",
        runs: &[
            Run::engine(pacing::by_queue_pair_one_is_slowed_and_by_level_both),
            Run::live(live::ibcc::nic::scope),
        ],
    },
    Case {
        id: "IBCC-15",
        title: "Trigger threshold event",
        source: "Annex A10 CA congestion log",
        note: "An entry is made when CCTI goes from below the threshold to or above it, not at each BECN above it (as hfi1 does). The entry names flow, queue pair, service level and CCTI; the remote LID is the flow's destination. Threshold 0: no entries.",
        runs: &[
            Run::engine(pacing::crossing_the_trigger_is_logged_once),
            Run::live(live::ibcc::nic::trigger),
        ],
    },
    Case {
        id: "IBCC-16",
        title: "Hot spot with and without CC",
        source: "seed 000 Table 1 case 4; Fig. 3",
        note: "",
        runs: &[Run::live(live::fabrics::hot_spot)],
    },
];
