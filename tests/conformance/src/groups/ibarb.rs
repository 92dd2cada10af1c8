//! IBARB: InfiniBand: SL/VL and arbitration.
//!
//! Each program is a switch whose neighbour 1 sends what is to leave by port 4, where the order on
//! the line is read off.

use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, MTU, RATE, planned_lane, planned_lanes, switch};
use crate::bench::line::{line, never_idle, packets};
use crate::bench::packets::{frame, parsed, send_only};
use crate::case::{Case, Failure, Finding, Group, Run, ensure, same};
use crate::live;
use proto::frame::Frame;
use proto::ids::{ServiceLevel, VirtualLane};
use proto::link::{ArbitrationConfig, CreditConfig, LinkControl};
use proto::units::Duration;
use proto::wire::infiniband::PacketBuilder;
use switchd::config::SwitchConfig;
use switchd::switch::Switch;

/// The group.
pub const GROUP: Group =
    Group { name: "IBARB", subject: "InfiniBand: SL/VL and arbitration", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "IBARB-01",
        title: "SL→VL map",
        source: "IBA §7.6.6",
        note: "A level mapped to a lane that the output does not have is discarded like one mapped to VL15, under the same reason.",
        runs: &[
            Run::engine(every_level_takes_the_lane_of_its_pair_of_ports),
            Run::live(live::ibarb::service_levels),
        ],
    },
    Case {
        id: "IBARB-02",
        title: "Low table weights",
        source: "IBA §7.6.9; weights in 64-octet units",
        note: "A weight is charged with octets LRH to VCRC and served until it is used up, rounded up to a whole packet: a weight below one packet is one packet a round, so 1:3 is 1:1 with full frames, within the one MTU a round that the case allows.",
        runs: &[
            Run::engine(the_low_table_shares_octets_by_weight),
            Run::live(live::ibarb::low_weights),
        ],
    },
    Case {
        id: "IBARB-03",
        title: "High table precedence and limit",
        source: "IBA §7.6.9 LimitOfHighPriority",
        note: "The low table's chance comes with the packet that uses up the limit of n × 4096 octets (LRH to VCRC), and lasts one packet.",
        runs: &[
            Run::engine(the_high_table_goes_first_up_to_its_limit),
            Run::live(live::ibarb::high_limit),
        ],
    },
    Case {
        id: "IBARB-04",
        title: "Weight 0 entry is skipped",
        source: "IBA §7.6.9",
        note: "",
        runs: &[Run::engine(an_entry_of_weight_zero_is_never_served)],
    },
    Case {
        id: "IBARB-05",
        title: "Blocked VL does not block others",
        source: "IBA §7.6",
        note: "Full rate: the line is never idle; flow-control packets of the port itself are part of what it carries.",
        runs: &[
            Run::engine(a_lane_without_credit_costs_the_others_nothing),
            Run::live(live::ibfc::blocked_lane),
        ],
    },
];

/// The port at which the order is read off.
const OUT: u8 = 4;

/// A packet of `payload` octets from LID 1 to `to`.
fn packet(to: u16, lane: u8, level: u8, psn: u32, payload: usize) -> Frame {
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(lane),
        service_level: ServiceLevel::truncate(level),
        ..send_only(1, to, psn)
    };
    frame(&builder, payload)
}

fn bench(config: SwitchConfig) -> Result<Bench<Switch>, Failure> {
    let lanes = config.ports[0].link.data_lanes();
    Bench::up(Switch::new(config).map_err(|error| error.to_string())?, lanes)
}

/// The lanes in the order in which `each` packets on every lane of `lanes` leave, all of them
/// waiting before the first does: a management packet holds the line meanwhile.
fn order(
    tables: ArbitrationConfig,
    lanes: &[u8],
    each: u32,
    payload: usize,
) -> Result<(Bench<Switch>, Vec<u8>), Failure> {
    let mut config = switch(OUT, 4);
    let control = CreditConfig { data_lanes: 4, arbitration: tables, ..CreditConfig::default() };
    config.ports[usize::from(OUT) - 1].link.control = LinkControl::Credits(control);
    let mut bench = bench(config)?;
    bench.send(1, packet(u16::from(OUT), VirtualLane::MANAGEMENT.get(), 0, 0, 256));
    for psn in 0..each {
        lanes.iter().for_each(|lane| {
            bench.send(1, packet(u16::from(OUT), *lane, *lane, psn, payload));
        });
    }
    bench.run_for(FRAME_TIME * u64::from(each) * (lanes.len() as u64 + 1));
    let sent = line(bench.packets(OUT), RATE);
    let order: Vec<u8> = sent.iter().filter_map(|frame| frame.lane()).collect();
    let (first, rest) = order.split_first().ok_or_else(|| "nothing left port 4".to_owned())?;
    same("the first lane served", *first, VirtualLane::MANAGEMENT.get())?;
    let rest = rest.to_vec();
    Ok((bench, rest))
}

/// Runs of the same lane, as in "0×2 1×6".
fn runs(order: &[u8]) -> String {
    let runs = order.chunk_by(|a, b| a == b).map(|run| format!("{}×{}", run[0], run.len()));
    runs.collect::<Vec<_>>().join(" ")
}

fn every_level_takes_the_lane_of_its_pair_of_ports() -> Finding {
    const PORTS: u8 = 4;
    const LANES: u8 = 4;
    let pairs = (1..=PORTS).flat_map(|input| (1..=PORTS).map(move |output| (input, output)));
    let mut config = switch(PORTS, LANES);
    config.sl2vl = planned_lanes(PORTS);
    let mut bench = bench(config)?;
    let (mut relayed, mut discarded) = (0, 0);
    for (input, output) in pairs.filter(|(input, output)| input != output) {
        for level in 0..16 {
            bench.forget();
            let before = bench.reading();
            bench.send(input, packet(output.into(), level % LANES, level, 0, 64));
            bench.run_for(FRAME_TIME);
            let at = format!("from port {input} to {output} at level {level}");
            let lane = planned_lane(input, output, level);
            let lost = bench.lost_since(&before, input);
            if lane >= LANES {
                same(format!("what is lost {at}, lane {lane}"), lost, "vl 1".to_owned())?;
                same(format!("packets sent {at}"), bench.packets(output).count(), 0)?;
                discarded += 1;
                continue;
            }
            same(format!("what is lost {at}"), lost, "nothing".to_owned())?;
            let sent: Vec<_> = bench.packets(output).collect();
            same(format!("packets sent {at}"), sent.len(), 1)?;
            let (packet, _) = parsed(&sent[0].frame)?;
            same(format!("the lane {at}"), packet.lrh.virtual_lane.get(), lane)?;
            same(format!("the level {at}"), packet.lrh.service_level.get(), level)?;
            relayed += 1;
        }
    }
    Ok(format!(
        "12 pairs of ports × 16 levels: {relayed} on the lane of the table, {discarded} discarded as vl"
    ))
}

fn the_low_table_shares_octets_by_weight() -> Finding {
    let mut seen = Vec::new();
    for (weights, payload, each) in [((1, 3), 8, 60), ((64, 192), MTU, 36), ((1, 3), MTU, 36)] {
        let low = vec![(0, weights.0), (1, weights.1)];
        let tables = ArbitrationConfig { high: Vec::new(), low, high_limit: 0 };
        let (_, order) = order(tables, &[0, 1], each, payload)?;
        let octets = payload as u64 + 26;
        let share = |weight: u8| (u64::from(weight) * 64).div_ceil(octets) as usize;
        let (zero, one) = (share(weights.0), share(weights.1));
        // As long as both lanes have something to send.
        let rounds = each as usize / one.max(zero);
        let found = &order[..rounds * (zero + one)];
        let round = format!("0×{zero} 1×{one}");
        let expected = vec![round; rounds].join(" ");
        let what = format!("the order at {}:{} with {octets} octets", weights.0, weights.1);
        same(what, runs(found), expected)?;
        let count = |lane: u8| found.iter().filter(|other| **other == lane).count() as u64 * octets;
        let (a, b) = (count(0), count(1));
        seen.push(format!(
            "{}:{} with packets of {octets}: {a} to {b} octets in {rounds} rounds",
            weights.0, weights.1
        ));
    }
    Ok(seen.join("; "))
}

fn the_high_table_goes_first_up_to_its_limit() -> Finding {
    const EACH: u32 = 24;
    let mut seen = Vec::new();
    // Limit, payload, high packets before each low one; none: all of them.
    let rows = [(0, MTU, Some(1)), (1, MTU, Some(2)), (1, 1024, Some(4)), (255, MTU, None)];
    for (high_limit, payload, high_per_low) in rows {
        let tables = ArbitrationConfig { high: vec![(2, 255)], low: vec![(0, 4)], high_limit };
        let (_, order) = order(tables, &[0, 2], EACH, payload)?;
        let (all, per_low) = (EACH as usize, high_per_low.unwrap_or(EACH as usize));
        let rounds = all / per_low;
        let alternating = vec![format!("2×{per_low} 0×1"); rounds].join(" ");
        let found = runs(&order[..all + rounds]);
        let expected = match high_per_low {
            Some(_) => alternating,
            // The low lane gets what the high one leaves: nothing before its last packet.
            None => format!("2×{all} 0×1"),
        };
        same(format!("the order at limit {high_limit}"), found, expected)?;
        seen.push(match high_per_low {
            Some(n) => {
                format!("limit {high_limit}: {} octets high a low packet", n * (payload + 26))
            }
            None => format!("limit {high_limit}: all {all} high ones first"),
        });
    }
    Ok(seen.join("; "))
}

fn an_entry_of_weight_zero_is_never_served() -> Finding {
    let tables =
        ArbitrationConfig { high: vec![(1, 0), (2, 4)], low: vec![(3, 0), (0, 4)], high_limit: 1 };
    let (mut bench, order) = order(tables, &[0, 1, 2, 3], 20, MTU)?;
    let count = |lane: u8| order.iter().filter(|other| **other == lane).count();
    same(
        "packets of VL0 and VL2, weight 4",
        [count(0), count(2)].map(|n| n.to_string()).join(", "),
        "20, 20".to_owned(),
    )?;
    same("packets of VL1 and VL3, weight 0", count(1) + count(3), 0)?;
    same("packets still waiting", bench.reading().balance.buffered, 40)?;
    Ok("20 each of the lanes with weight, none of the 40 without".to_owned())
}

fn a_lane_without_credit_costs_the_others_nothing() -> Finding {
    const EACH: u32 = 30;
    let mut bench = bench(switch(OUT, 2))?;
    bench.offer(OUT, 0, 0);
    bench.forget();
    for psn in 0..EACH {
        // The blocked lane is ahead in every respect: lower number, earlier packets.
        bench.send(1, packet(u16::from(OUT), 0, 0, psn, MTU));
    }
    for psn in 0..EACH {
        bench.send(1, packet(u16::from(OUT), 1, 1, psn, MTU));
    }
    bench.run_for(FRAME_TIME * u64::from(EACH) + Duration::from_us(1));
    let carried = line(bench.line(OUT), RATE);
    let last = carried.iter().rposition(|frame| frame.lane().is_some());
    never_idle(&carried[..last.map_or(0, |last| last + 1)])?;
    let lanes: Vec<u8> = packets(&carried).filter_map(|frame| frame.lane()).collect();
    same("what left while VL0 had no credit", runs(&lanes), format!("1×{EACH}"))?;
    bench.offer(OUT, 0, 2048);
    bench.run_for(FRAME_TIME * u64::from(EACH + 1));
    let after = bench.packets(OUT).count();
    ensure(after == 2 * EACH as usize, || {
        format!("{after} packets have left after VL0 got credit, expected {}", 2 * EACH)
    })?;
    Ok(format!("{EACH} packets of VL1 without a gap, none of VL0 until it had credit"))
}
