//! QOS: queues, buffers, scheduling.
//!
//! Which queue a frame joins is judged in [`maps`], how queues share a line in [`shares`], how much may
//! wait in [`room`], and a whole fabric of it in [`mesh`].

use crate::case::cases;

mod maps;
mod mesh;
mod room;
mod shares;

cases! { "QOS", "Queues, buffers, scheduling";
    "QOS-01" both(maps::dscp_to_queue), "DSCP → queue, all 64",
        "sai_qos_tests.py DscpMappingPB",
        "A queue is an output's priority: there are eight, each its own queue. On L the map of a scenario (upper three bits); others on E.";
    "QOS-02" both(maps::to_priority_group), "DSCP → priority group, PCP → queue/PG",
        "DscpToPgMapping, Dot1pToQueueMapping, Dot1pToPgMapping",
        "A priority group is an input's priority: one map leads to group and queue alike. On L the maps of a scenario; others on E.";
    "QOS-03" both(shares::dwrr_shares), "DWRR shares",
        "WRRtest + qos_params.td3.yaml wrr; torvalds/linux net/forwarding/sch_ets_tests.sh",
        "“Differs by < 80” is read as the source computes it: the frames of all queues that are left when one of them drains. “±1 MTU per round” is read as: after every frame there is a number of rounds of which each waiting class has had its weight's worth of octets to within one frame.";
    "QOS-04" both(shares::strict_priority), "Strict priority",
        "sch_ets_tests.sh; UNH-IOL ETS 37.1.7",
        "On E a strict backlog has all of the line, not 95 %.";
    "QOS-05" both(shares::idle_share), "Bandwidth sharing",
        "UNH-IOL 802.1Qaz ETS 37.1.1–37.1.5";
    "QOS-06" both(room::lossy_queue_limit), "Lossy queue limit",
        "LossyQueueTest",
        "The limit is the first frame that does not fit, as in the source. It is counted at the output's port (queue_full).";
    "QOS-07" both(room::reserve), "Shared buffer and min reserve",
        "PgMinThresholdTest, SharedResSizeTest";
    "QOS-08" both(room::watermarks_stay), "Watermarks",
        "PGSharedWatermarkTest, PGHeadroomWatermarkTest, QSharedWatermarkTest, BufferPoolWatermarkTest",
        "The rounding unit is an octet. Clearing is an act of its own (restart), never one of reading. On L nothing clears them before the run is over: clearing is left to E.";
    "QOS-09" both(room::lossless_is_never_dropped), "Lossless never tail-drops or WRED-drops",
        "sonic-buildimage#27606",
        "WRED marks and never drops, and the limit of lossy queues does not exist for lossless ones: no configuration can violate this, so there is none to reject.";
    "QOS-10" both(room::zero_headroom), "Zero headroom rejected",
        "sonic-net/SONiC#480",
        "So is any headroom that does not hold what can still come in.";
    "QOS-11" both(mesh::full_mesh), "Full mesh sanity",
        "FullMeshTrafficSanity, TrafficSanityTest",
        "On L four adapters, all priorities lossless.";
}

/// The last port of the switches here: the way out.
const OUT: u8 = 4;
