//! IBRX: InfiniBand: receive checks and relay.

use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, MTU, class, nic, switch};
use crate::bench::packets::{frame, send_only};
use crate::case::{Case, Failure, Group, Run, same};
use crate::live::ibrx as live;
use nicd::config::{NicConfig, Transport};
use nicd::nic::Nic;
use switchd::switch::Switch;

mod checks;
mod integrity;
mod relay;

/// The group.
pub const GROUP: Group =
    Group { name: "IBRX", subject: "InfiniBand: receive checks and relay", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "IBRX-01",
        title: "Bad VCRC is discarded",
        source: "IBTA test spec via CATC IBTrainer manual p.80: TD_10.2.4.1.1 / TD_10.3.1.1.1, assertions v1c07-007#01.01, v1c07-009#01.01",
        note: "",
        runs: &[Run::engine(integrity::bad_vcrc), Run::live(live::bad_vcrc)],
    },
    Case {
        id: "IBRX-02",
        title: "Bad ICRC reaches the end node and dies there",
        source: "IBA §7.8.1; IBTrainer p.77 TD_10.2.4.1.2, v1c07-007#01.02",
        note: "",
        runs: &[Run::engine(integrity::bad_icrc), Run::live(live::bad_icrc)],
    },
    Case {
        id: "IBRX-03",
        title: "PktLen disagrees with length",
        source: "IBTrainer p.85 BadPktLen, v1c07-007#01.04, v1c07-009#01.04",
        note: "The minimum less one was read twice: as a PktLen that disagrees, and as a packet of five words whose PktLen agrees.",
        runs: &[Run::engine(checks::packet_length_disagrees), Run::live(live::packet_length)],
    },
    Case {
        id: "IBRX-04",
        title: "Payload above port MTU",
        source: "IBA §7.4/7.7 packet checks; DPDK dts TestSuite_mtu does the ± boundary test",
        note: "",
        runs: &[Run::engine(checks::payload_above_mtu), Run::live(live::mtu)],
    },
    Case {
        id: "IBRX-05",
        title: "VL not operational",
        source: "IBA §7.6 (VL use and checks)",
        note: "",
        runs: &[Run::engine(checks::lane_not_operational), Run::live(live::lane)],
    },
    Case {
        id: "IBRX-06",
        title: "DLID unknown, 0, permissive, multicast",
        source: "IBA §4.1 address ranges, §7.11 switch relay",
        note: "A NIC that has joined no group ends a multicast packet as delivered and counts it.",
        runs: &[Run::engine(relay::odd_destinations), Run::live(live::destination)],
    },
    Case {
        id: "IBRX-07",
        title: "Link state filter",
        source: "IBA §7.2 link state machine; IBTrainer p.90 v1c07-001#07, #14",
        note: "Down and Initialize are one state here: a port that hears nobody initializes for ever. An armed port takes data and sends none; the text of the case has it dropped before Active, but a peer may be active first, and IBA Vol 1 7.2 lets an armed port receive.",
        runs: &[Run::engine(relay::link_state_filter), Run::live(live::link_state)],
    },
    Case {
        id: "IBRX-08",
        title: "Aborted packet marker",
        source: "IBTrainer p.29, p.82 TD_10.2.4.1.9 (EBP / wrong end delimiter), v1c07-007#02",
        note: "The mark is bit 0 of the flags of the cable shim, the stand-in for the delimiter EBP.",
        runs: &[Run::engine(integrity::aborted_packet), Run::live(live::aborted)],
    },
    Case {
        id: "IBRX-09",
        title: "FECN change recomputes VCRC only",
        source: "IBA §7.8: ICRC excludes Resv8a and VL, VCRC covers them",
        note: "",
        runs: &[Run::engine(integrity::switch_changes_vcrc_alone), Run::live(live::relabelled)],
    },
];

/// A switch of four ports whose links are active.
fn fresh_switch(lanes: u8) -> Result<Bench<Switch>, Failure> {
    let switch = Switch::new(switch(4, lanes)).map_err(|error| error.to_string())?;
    Bench::up(switch, lanes)
}

fn adapter_config(lid: u16, transport: Transport) -> NicConfig {
    NicConfig { classes: vec![class(transport, 0)], ..nic(lid, 1) }
}

/// A NIC of one class whose link is active.
fn adapter(lid: u16, transport: Transport) -> Result<Bench<Nic>, Failure> {
    let nic = Nic::new(adapter_config(lid, transport)).map_err(|error| error.to_string())?;
    Bench::up(nic, 1)
}

/// After all that was refused, a good packet of full size goes from port 1 to port 3.
fn good_packet_still_passes(bench: &mut Bench<Switch>) -> Result<(), Failure> {
    let before = bench.packets(3).count();
    bench.send(1, frame(&send_only(1, 3, 9), MTU));
    bench.run_for(FRAME_TIME);
    same("good packets passed afterwards", bench.packets(3).count() - before, 1)
}
