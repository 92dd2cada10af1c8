//! IBCC: InfiniBand: FECN, BECN, congestion table.
//!
//! What switches mark is judged in [`marking`], what NICs return and how they obey in [`nic`], with more of it
//! on the virtual clock in [`returns`] and [`pacing`]; what comes of it all in [`hot_spot`].

use crate::case::cases;

mod account;
mod hot_spot;
mod marking;
mod nic;
mod pacing;
pub mod returns;

pub use marking::marks_keep_icrc;

cases! { "IBCC", "InfiniBand: FECN, BECN, congestion table";
    "IBCC-01" both(marking::threshold_zero), "Threshold 0 = never mark",
        "Annex A10; seed 000 §IV.A";
    "IBCC-02" engine(account::threshold_scale), "Threshold scale is monotonic",
        "Annex A10; seed 000",
        "A10 leaves the scale to the vendor: Threshold k is a fill of 0.90 − 0.06·(k − 1) of one input buffer, whole 64-octet blocks, summed over all inputs of the output's lane; a packet is above it if it finds more when it becomes first of its queue.";
    "IBCC-03" both(marking::root_not_victim), "Root, not victim",
        "Annex A10; seeds 000 and 001 (root = over threshold and credits available)",
        "Judged when a packet becomes first of its queue (on arrival, or when its predecessor has left): a victim is one whose port had to wait for credit while the predecessor was first, or has none for the packet itself. At the instant of departure credit is always there.";
    "IBCC-04" both(marking::packet_size), "Packet_Size filter",
        "Annex A10; seed 000 “packets smaller than a configurable packet size are not marked”",
        "Packet_Size counts octets LRH to VCRC, in units of 64. ACK, CN, link and VL15 packets are never marked whatever Packet_Size says: nobody would answer them.";
    "IBCC-05" both(marking::never_cleared), "FECN is never cleared",
        "Annex A10; seed 000 “FECN bits are passed through unchanged by all switches”";
    "IBCC-06" both(nic::on_acknowledgements), "BECN return on RC",
        "Annex A10; seed 000",
        "Coalescing rule: an acknowledgement carries one BECN if any packet it newly confirms was marked; so with ack_every 1 each marked packet returns one. A NAK and the repeated ACK of a duplicate carry it too; a marked packet that draws no acknowledgement (a further one ahead of a gap) draws a CN.";
    "IBCC-07" both(nic::as_notifications), "CN on non-ACK services",
        "Annex A10 §10.3.2",
        "The CN goes to the queue pair that UD names in its DETH and UC has by connection, on the service level of the receiving queue pair's own connection and the lane that level has here. Body of 16 zero octets, or none (cnp_body).";
    "IBCC-08" both(nic::no_answer), "No reply to CN, ACK, multicast",
        "Annex A10 (text to be checked); avoids loops",
        "Never answered, and so never a cause of BECN: acknowledgements of any kind, CN, multicast, VL15, and packets refused before their queue pair is known (ICRC, partition, key, queue pair).";
    "IBCC-09" engine(pacing::index_arithmetic), "CCTI arithmetic",
        "Annex A10; seed 000 “Injection Rate Reduction”",
        "CCTI starts at CCTI_Min, so the rule is min(CCTI_Limit, CCTI_Min + n·i). CCTI_Limit is further bounded by the last entry of the table.";
    "IBCC-10" engine(pacing::recovery_timer), "Recovery timer",
        "Annex A10 CCTI_Timer (step per expiry to be checked: spec text vs seed 000 “reduced by an amount also set by the CCM”)",
        "One step of 1 a period, as in A10, which has no field for the amount that seed 000 mentions. The timer runs from the BECN that found it idle; later BECNs do not restart it. CCTI_Timer 0: the index never falls.";
    "IBCC-11" both(marking::every_eligible_packet), "Every eligible packet when Marking_Rate is 0",
        "Annex A10 switch congestion setting",
        "Marking_Rate n is read as the mean number of eligible packets that pass unmarked between two marks: every (n + 1)-th is marked, with a random phase.";
    "IBCC-12" both(nic::packet_delay), "IPD value",
        "Annex A10 CCT entry",
        "Packet time: octets LRH to VCRC at the link's data rate, to the nearest picosecond; the shift cuts its fraction off. The delay runs from the last bit of a packet to the first bit of the flow's next, and follows the packet just sent. Link packets and other flows may still have the line when it is over.";
    "IBCC-13" engine(pacing::no_banked_time), "IPD does not bank idle time",
        "rate-limiter sanity";
    "IBCC-14" both(nic::scope), "QP scope vs SL scope",
        "seed 000 “either to the specific queue pair … or to all QPs on the port using a particular SL”";
    "IBCC-15" both(nic::trigger), "Trigger threshold event",
        "Annex A10 CA congestion log",
        "An entry is made when CCTI goes from below the threshold to or above it, not at each BECN above it (as hfi1 does). The entry names flow, queue pair, service level and CCTI; the remote LID is the flow's destination. Threshold 0: no entries.";
    "IBCC-16" live(hot_spot::hot_spot), "Hot spot with and without CC",
        "seed 000 Table 1 case 4; Fig. 3";
}
