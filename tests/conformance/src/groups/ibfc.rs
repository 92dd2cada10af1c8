//! IBFC: InfiniBand: link credits.

use crate::bench::Bench;
use crate::bench::devices::switch;
use crate::case::{Case, Failure, Group, Run};
use crate::live::{fabrics, ibfc as live};
use proto::device::Device;
use proto::units::{Bytes, Duration};
use switchd::switch::Switch;

mod accounts;
mod encapsulation;
mod faults;
mod lossy;
mod timing;

/// The group.
pub const GROUP: Group = Group { name: "IBFC", subject: "InfiniBand: link credits", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "IBFC-01",
        title: "FCCL formula",
        source: "IBA §7.9.4; same rule in IBTrainer manual p.28",
        note: "",
        runs: &[Run::engine(accounts::limit_formula)],
    },
    Case {
        id: "IBFC-02",
        title: "ABR rules",
        source: "IBA §7.9.4; IBTrainer manual p.28",
        note: "",
        runs: &[Run::engine(accounts::received_blocks_rules)],
    },
    Case {
        id: "IBFC-03",
        title: "Transmit gate",
        source: "IBA §7.9.4",
        note: "FCTBS is that of the transmitter (TBS in the text).",
        runs: &[Run::engine(accounts::transmit_gate)],
    },
    Case {
        id: "IBFC-04",
        title: "Block rounding",
        source: "IBA §7.9.4; shared/spec/algorithms.md §1.1 counts LRH first octet to VCRC last octet",
        note: "Counted from the first octet of the LRH to the last of the VCRC. Packets of 63, 64 or 65 octets do not exist (PktLen counts words, the VCRC adds two): the formula is checked at those sizes, both ends at every size there is.",
        runs: &[Run::engine(accounts::block_rounding), Run::live(live::block_rounding)],
    },
    Case {
        id: "IBFC-05",
        title: "No credit, no data",
        source: "IBA §7.9; PortXmitWait in perf counters",
        note: "",
        runs: &[Run::engine(timing::no_credit_no_data), Run::live(live::no_credit)],
    },
    Case {
        id: "IBFC-06",
        title: "Refresh interval",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::engine(timing::refresh_interval), Run::live(live::refresh)],
    },
    Case {
        id: "IBFC-07",
        title: "Init op on link up",
        source: "IBA §7.9.4",
        note: "Op 0 is said from Arm on, not first in Active: two ends could not become active otherwise (IBA Vol 1 7.9.4: Op 1 in Initialize, Op 0 in Arm and Active).",
        runs: &[Run::engine(timing::initialization), Run::live(live::initialization)],
    },
    Case {
        id: "IBFC-08",
        title: "Flow-control watchdog",
        source: "IBA §7.9.4",
        note: "",
        runs: &[Run::engine(timing::watchdog), Run::live(live::watchdog_bites)],
    },
    Case {
        id: "IBFC-09",
        title: "Lost FC packet",
        source: "IBA §7.9.4 (absolute, not incremental credits)",
        note: "Every device of a star with three senders is deaf to every k-th flow-control packet at each of its ports.",
        runs: &[Run::engine(faults::lost_flow_control), Run::live(live::lost_flow_control)],
    },
    Case {
        id: "IBFC-10",
        title: "Duplicate / reordered FC packet",
        source: "own link layer rule; needed because FCCL is absolute",
        note: "Rejected by the sequence number of the cable, as copies and as latecomers; the device never sees them.",
        runs: &[
            Run::engine(encapsulation::repeated_and_late_flow_control),
            Run::live(live::old_flow_control),
        ],
    },
    Case {
        id: "IBFC-11",
        title: "Bad LPCRC",
        source: "IBA §7.9.4, link packet check",
        note: "",
        runs: &[Run::engine(faults::damaged_flow_control), Run::live(live::damaged_flow_control)],
    },
    Case {
        id: "IBFC-12",
        title: "VL15 has no credits",
        source: "IBA §7.6.3, §7.9",
        note: "VL15 goes ahead of data on the same output (IBA Vol 1 7.6.9), so data there waits while a flood lasts; it holds no buffer and no credit of it.",
        runs: &[Run::engine(faults::management_has_no_credits), Run::live(live::management_lane)],
    },
    Case {
        id: "IBFC-13",
        title: "Incast 3→1 without loss",
        source: "IBA losslessness; seeds (Pfister et al. hot-spot workload)",
        note: "",
        runs: &[Run::live(fabrics::incast_without_loss)],
    },
];

/// A device says what it has to say about every lane at least this often: 16 384 symbol times.
const DEVICE_REFRESH: Duration = Duration::from_ns(16_384 * 4);

/// No neighbour says anything by itself any more.
fn mute_all<D: Device>(bench: &mut Bench<D>) {
    for port in 1..=bench.device.ports() as u8 {
        bench.neighbour(port).speaks = false;
    }
}

/// A switch of four ports whose input buffers hold so many blocks, its links active.
fn narrow_switch(blocks: u32) -> Result<Bench<Switch>, Failure> {
    let mut config = switch(4, 1);
    for port in &mut config.ports {
        port.link.buffer = Bytes::new(u64::from(blocks) * 64);
    }
    let switch = Switch::new(config).map_err(|error| error.to_string())?;
    Bench::up(switch, 1)
}
