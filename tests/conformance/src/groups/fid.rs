//! FID: link emulation, accounting, fidelity.
//!
//! On the virtual clock whole fabrics run from a scenario: [`accounts`], [`order`].

use crate::case::{Case, Group, Run};
use crate::live::fid as live;

mod accounts;
mod order;

/// The group.
pub const GROUP: Group =
    Group { name: "FID", subject: "Link emulation, accounting, fidelity", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "FID-01",
        title: "Conservation at every port",
        source: "own rule; torvalds/linux qos_pfc.sh dout == din; SONiC WRRtest q_cnt_sum == total",
        note: "The equation cannot hold for one port, since frames come in by one and leave by another: it is held for each switch and lane over its ports, for each link and way, and each port's counters are held against what was seen on its wire. Link packets never quiesce; they are in the ports' accounts and not in the links'.",
        runs: &[
            Run::engine(accounts::every_frame_is_sent_dropped_or_kept_at_every_port),
            Run::live(live::conservation),
        ],
    },
    Case {
        id: "FID-02",
        title: "Serialisation rate",
        source: "sch_ets / qos_pfc tolerance is 5 %",
        note: "Each of four sizes for a quarter of the ten seconds of its rate. 100 Mb/s counts only where the run is faithful: the profile leaves that rate to hosts that can.",
        runs: &[Run::live(live::serialisation_rate)],
    },
    Case {
        id: "FID-03",
        title: "Propagation delay",
        source: "Mininet fidelity literature (delay monitoring)",
        note: "",
        runs: &[Run::live(live::propagation_delay)],
    },
    Case {
        id: "FID-04",
        title: "Order",
        source: "test_ipip_packet_reorder in sonic-mgmt snappi qos",
        note: "A million frames of each flow on the virtual clock. Live, as many as a line of the profile carries in 30 s: a million would last 28 minutes.",
        runs: &[
            Run::engine(order::a_million_frames_of_a_flow_arrive_once_and_in_order),
            Run::live(live::order),
        ],
    },
    Case {
        id: "FID-05",
        title: "Injected datagram loss is reported",
        source: "link sequence numbers; lance0/xfr#75, envoyproxy/envoy#7165",
        note: "By a program of the packet filter on the daemon's socket, at random, for one link.",
        runs: &[Run::live(live::datagram_loss)],
    },
    Case {
        id: "FID-06",
        title: "Injected reorder and duplicate",
        source: "own rule",
        note: "",
        runs: &[Run::live(live::reorder_and_duplicate)],
    },
    Case {
        id: "FID-07",
        title: "Socket overflow",
        source: "envoy#7165 (u32 wrap), holepunchto/libudx#214",
        note: "",
        runs: &[Run::live(live::socket_overflow)],
    },
    Case {
        id: "FID-08",
        title: "CPU starvation is infidelity",
        source: "ns-3 RealtimeSimulatorImpl HardLimit; Handigol et al. 2012 fidelity monitoring",
        note: "The quota is made by stopping switchd for 90 ms of each 100 ms, which needs no rights. One run stands for all: the run's verdict and its lateness are judged.",
        runs: &[Run::live(live::starvation)],
    },
    Case {
        id: "FID-09",
        title: "Clock step",
        source: "varnishcache/varnish-cache#1874, airbus/sen#198",
        note: "The clock of the daemon alone is stepped, by a library preloaded into it; stepping the host's would harm others, and time namespaces cannot hold CLOCK_REALTIME. Captures carry fabric time.",
        runs: &[Run::live(live::clock_step)],
    },
    Case {
        id: "FID-10",
        title: "Counters survive nothing silently",
        source: "Prometheus counter-reset rule",
        note: "A restarted daemon is a new run here. A run's daemons serve no metrics, so there is no start_time; epoch, counters and the peer's count of refused frames are judged.",
        runs: &[Run::live(live::restart)],
    },
    Case {
        id: "FID-11",
        title: "No foreign noise",
        source: "sonic-mgmt#22871, #8269",
        note: "Takes the rights of the backend netns. The kernel's IPv6 is silenced before interfaces are made.",
        runs: &[Run::live(live::no_foreign_noise)],
    },
    Case {
        id: "FID-12",
        title: "Offloads",
        source: "p4lang/behavioral-model#919, #986, #1280; smoltcp-rs/smoltcp#497",
        note: "Takes the rights of the backend netns. Nothing is turned off: the port finishes what a sender left to hardware. A frame above the port's MTU is dropped and counted.",
        runs: &[Run::live(live::offloads)],
    },
    Case {
        id: "FID-13",
        title: "Capture is faithful",
        source: "gojue/ecapture#385",
        note: "",
        runs: &[Run::live(live::capture)],
    },
];
