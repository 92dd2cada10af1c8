//! QOS: queues, buffers, scheduling.
//!
//! Which queue a frame joins is tested in [`maps`], how queues share a line in [`shares`], how much may
//! wait in [`room`], and a whole fabric of it in [`mesh`].

use crate::bench::Bench;
use crate::case::{Case, Failure, Group, Run};
use crate::live::qos as live;
use switchd::config::SwitchConfig;
use switchd::switch::Switch;

mod maps;
mod mesh;
mod room;
mod shares;

/// The group.
pub const GROUP: Group =
    Group { name: "QOS", subject: "Queues, buffers, scheduling", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "QOS-01",
        title: "DSCP → queue, all 64",
        source: "sai_qos_tests.py DscpMappingPB",
        note: "A queue is an output's priority: there are eight, each its own queue. On L the map of a scenario (upper three bits); others on E.",
        runs: &[Run::engine(maps::dscp_to_queue), Run::live(live::maps::dscp_to_queue)],
    },
    Case {
        id: "QOS-02",
        title: "DSCP → priority group, PCP → queue/PG",
        source: "DscpToPgMapping, Dot1pToQueueMapping, Dot1pToPgMapping",
        note: "A priority group is an input's priority: one map leads to group and queue alike. On L the maps of a scenario; others on E.",
        runs: &[Run::engine(maps::to_priority_group), Run::live(live::maps::to_priority_group)],
    },
    Case {
        id: "QOS-03",
        title: "DWRR shares",
        source: "WRRtest + qos_params.td3.yaml wrr; torvalds/linux net/forwarding/sch_ets_tests.sh",
        note: "“Differs by < 80” is read as the source computes it: the frames of all queues that are left when one of them drains. “±1 MTU per round” is read as: after every frame there is a number of rounds of which each waiting class has had its weight's worth of octets to within one frame.",
        runs: &[Run::engine(shares::dwrr_shares), Run::live(live::shares::dwrr_shares)],
    },
    Case {
        id: "QOS-04",
        title: "Strict priority",
        source: "sch_ets_tests.sh; UNH-IOL ETS 37.1.7",
        note: "On E a strict backlog has all of the line, not 95 %.",
        runs: &[Run::engine(shares::strict_priority), Run::live(live::shares::strict_priority)],
    },
    Case {
        id: "QOS-05",
        title: "Bandwidth sharing",
        source: "UNH-IOL 802.1Qaz ETS 37.1.1–37.1.5",
        note: "",
        runs: &[Run::engine(shares::idle_share), Run::live(live::shares::idle_share)],
    },
    Case {
        id: "QOS-06",
        title: "Lossy queue limit",
        source: "LossyQueueTest",
        note: "The limit is the first frame that does not fit, as in the source. It is counted at the output's port (queue_full).",
        runs: &[Run::engine(room::lossy_queue_limit), Run::live(live::room::lossy_queue_limit)],
    },
    Case {
        id: "QOS-07",
        title: "Shared buffer and min reserve",
        source: "PgMinThresholdTest, SharedResSizeTest",
        note: "",
        runs: &[Run::engine(room::reserve), Run::live(live::room::reserve)],
    },
    Case {
        id: "QOS-08",
        title: "Watermarks",
        source: "PGSharedWatermarkTest, PGHeadroomWatermarkTest, QSharedWatermarkTest, BufferPoolWatermarkTest",
        note: "The rounding unit is an octet. Clearing is an act of its own (restart), never one of reading. On L nothing clears them before the run is over: clearing is left to E.",
        runs: &[Run::engine(room::watermarks_stay), Run::live(live::room::watermarks_stay)],
    },
    Case {
        id: "QOS-09",
        title: "Lossless never tail-drops or WRED-drops",
        source: "sonic-buildimage#27606",
        note: "WRED marks and never drops, and the limit of lossy queues does not exist for lossless ones: no configuration can violate this, so there is none to reject.",
        runs: &[
            Run::engine(room::lossless_is_never_dropped),
            Run::live(live::room::lossless_is_never_dropped),
        ],
    },
    Case {
        id: "QOS-10",
        title: "Zero headroom rejected",
        source: "sonic-net/SONiC#480",
        note: "So is any headroom that does not hold what can still come in.",
        runs: &[Run::engine(room::zero_headroom), Run::live(live::room::zero_headroom)],
    },
    Case {
        id: "QOS-11",
        title: "Full mesh sanity",
        source: "FullMeshTrafficSanity, TrafficSanityTest",
        note: "On L four adapters, all priorities lossless.",
        runs: &[Run::engine(mesh::full_mesh), Run::live(live::mesh::full_mesh)],
    },
];

/// The last port of the switches here: the way out.
const OUT: u8 = 4;

fn bench(config: SwitchConfig) -> Result<Bench<Switch>, Failure> {
    Ok(Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?))
}
