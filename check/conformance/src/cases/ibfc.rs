//! IBFC: InfiniBand: link credits: one switch whose neighbours play with their credits, each at a port of its
//! own ([`script`]); and what is counted at either end of a link ([`accounts`]).
//!
//! ```text
//!  port 1, 3   sources                     port 4   old, late and damaged flow control; trains anew
//!  port 2      withholds credit            port 5   silent on VL1 until the watchdog bites
//!                                          port 6   loses every k-th flow-control packet
//! ```

mod accounts;
mod script;

use crate::prelude::*;
use crate::star::star;
use proto::wire::infiniband::FlowControlOp;
use script::*;
use testbed::cost;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("IBFC-01", accounts::limit_formula),
    ("IBFC-02", accounts::received_blocks_rules),
    ("IBFC-03", accounts::transmit_gate),
    ("IBFC-04", block_rounding),
    ("IBFC-05", no_credit),
    ("IBFC-06", refresh),
    ("IBFC-07", initialization),
    ("IBFC-08", watchdog_bites),
    ("IBFC-09", lost_flow_control),
    ("IBFC-10", old_flow_control),
    ("IBFC-11", damaged_flow_control),
    ("IBFC-12", management_lane),
    ("IBFC-13", super::fid::incast_without_loss),
    ("IBFC-14", crate::laws::infiniband_switch),
];

/// A symbol of one lane at 10 Mb/s.
const SYMBOL: Duration = Duration::from_ns(800);
/// Source: IBTA Vol 1, 7.9.4.
const REFRESH_SYMBOLS: u64 = 65_536;
/// Source: IBTA Vol 1, 7.9.4.
const WATCHDOG_SYMBOLS: u64 = 400_000;

const REST: &str = "\
sl2vl = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
switch = { buffer = \"72 mtu\" }
";

static RUN: Shared<Record> = Shared::new(|on| {
    play(on, &star(6, "1900 ms", "vls = 2", REST), "s0", |script| {
        sizes(script);
        withheld(script);
        management(script);
        training(script);
        old_words(script, on);
        watchdog(script);
        losses(script);
    })
});

/// Nothing was sent beyond a limit and nothing was lost for want of room, whatever was done.
fn lossless(record: &Record) -> Result<()> {
    for (index, neighbour) in record.neighbours.iter().enumerate() {
        let port = index as u8 + 1;
        for (lane, account) in neighbour.lanes().iter().enumerate() {
            let what = format!("packets beyond the credit of port {port} VL{lane}");
            same(what, account.overruns, 0)?;
        }
        same(format!("overruns of port {port}"), record.drops(port, DropReason::BufferOverrun), 0)?;
    }
    Ok(())
}

/// IBFC-04.
pub fn block_rounding(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let blocks = SIZES.1.map(|payload| u32::from(cost(&packet(1, 2, 0, 0, payload))));
    let cost = SIZES.0 * blocks.iter().sum::<u32>();
    let last = |port| record.flow_control(port, 0).filter(|(at, _)| *at < WITHHELD.0).last();
    let first = |port| record.flow_control(port, 0).next();
    let ([Some((_, sent)), Some((_, room))], Some((_, at_first))) = ([last(2), last(1)], first(1))
    else {
        bail!("a port has sent no flow control");
    };
    same("blocks that port 2 counts as sent (FCTBS)", u32::from(sent.fctbs), cost)?;
    let risen = (room.fccl + 4096 - at_first.fccl) % 4096;
    same("blocks that port 1 counts as received (FCCL)", u32::from(risen), cost)?;
    let sizes = on.only_engine(accounts::every_size)?;
    Ok(format!("62, 66, 126 and 130 octets take 1, 2, 2 and 3 blocks at both ends{sizes}"))
}

/// IBFC-05.
pub fn no_credit(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let (from, to) = WITHHELD;
    same("packets on VL0 without credit", record.on_lane(2, 0, (from, to)), 0)?;
    let beside = record.on_lane(2, 1, (from, to));
    let after = record.on_lane(2, 0, (to, FLOOD.0));
    same("packets on VL0 once there is credit", after as u32, HELD_FRAMES)?;
    // It was ready some milliseconds before the window, and left after it.
    let waited = Duration::from_ps(record.lane(2, 0).hold_ps);
    let least = to.since(from);
    ensure!(waited >= least, "port_xmit_wait of VL0 is {waited}, at least {least} is due");
    lossless(&record)?;
    Ok(format!("1 s: 0 packets on VL0, {beside} on VL1, PortXmitWait {}", in_ms(waited)))
}

/// IBARB-05.
pub fn blocked_lane(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let (from, to) = WITHHELD;
    let octets = record.on_lane(2, 1, (from, to)) * 2074;
    let line = to.since(from).as_ps() / Duration::from_ns(800).as_ps();
    let permille = octets * 1_000 / line;
    ensure!(permille >= 970, "VL1 had {permille} ‰ of the line beside a blocked VL0");
    Ok(format!("VL1 had {permille} ‰ of the line beside a blocked VL0"))
}

/// IBFC-06.
pub fn refresh(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let most = SYMBOL * REFRESH_SYMBOLS + record.within(SYMBOL * (REFRESH_SYMBOLS / 20));
    let mut longest = Duration::ZERO;
    for port in 1..=6 {
        for lane in 0..2 {
            let sent: Vec<Instant> = record.flow_control(port, lane).map(|(at, _)| at).collect();
            ensure!(sent.len() > 20, "port {port} sent flow control {} times", sent.len());
            let gap = sent.windows(2).map(|pair| pair[1].since(pair[0])).max();
            longest = longest.max(gap.unwrap_or_default());
            ensure!(longest <= most, "port {port} VL{lane}: silent for {longest}, not {most}");
        }
    }
    let (longest, most) = (in_ms(longest), in_ms(most));
    Ok(format!("six ports, idle and loaded: never silent for longer than {longest} of {most}"))
}

/// IBFC-07.
pub fn initialization(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let sent = |from: Instant, to: Instant| {
        let here = record.flow_control(4, 0).filter(move |(at, _)| *at >= from && *at < to);
        here.map(|(_, packet)| (packet.op, packet.fctbs)).collect::<Vec<_>>()
    };
    let slack = us(3_000);
    let windows = [
        ("before any flow control came", Instant::ZERO, TRAINING[0], FlowControlOp::Init),
        ("once op 1 had come", TRAINING[0] + slack, TRAINING[1], FlowControlOp::Normal),
        ("when Active", TRAINING[1] + slack, TRAINING[2], FlowControlOp::Normal),
    ];
    for (when, from, to, op) in windows {
        let sent = sent(from, to);
        let all = sent.iter().all(|(other, _)| *other == op);
        ensure!(!sent.is_empty() && all, "{when} it sends {sent:?}");
    }
    let zero = sent(Instant::ZERO, TRAINING[1]).iter().all(|(_, fctbs)| *fctbs == 0);
    ensure!(zero, "FCTBS is not 0 before Active");
    let before = sent(Instant::ZERO, TRAINING[2]).last().map_or(0, |(_, fctbs)| *fctbs);
    ensure!(before > 0, "nothing was sent before it trained anew");
    let anew = sent(TRAINING[2] + slack, TRAINING[3]);
    let restarted = !anew.is_empty() && anew.iter().all(|(_, fctbs)| *fctbs == 0);
    ensure!(restarted, "asked to train anew, it sends {anew:?}");
    same("what passes after that", record.on_lane(4, 0, (ms(700), ms(1_600))), 1)?;
    Ok(format!("op 1 with FCTBS 0, then op 0; FCTBS {before} restarts at 0 when it trains anew"))
}

/// IBFC-08.
pub fn watchdog_bites(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let bites = record.events_of(5, |kind| *kind == EventKind::Watchdog);
    same("watchdog events", bites.len(), 1)?;
    same("watchdogs counted", record.port(5).watchdogs, 1)?;
    // The last word about VL1 left at most a repetition before the silence.
    let after = bites[0].since(DEAF.0);
    // Live ten hundredths more and less than the standard allows.
    let (least, most) = if on == Level::Live { (39, 113) } else { (49, 103) };
    let [least, most] = [least, most].map(|share| SYMBOL * (WATCHDOG_SYMBOLS * share / 100));
    lies("silence until the link is trained anew", after, least..=most)?;
    let trains = record.flow_control(5, 1).filter(|(at, _)| *at >= bites[0]);
    let initializes = trains.take(1).any(|(_, packet)| packet.op == FlowControlOp::Init);
    ensure!(initializes, "it does not send op 1 after that");
    same(
        "what passes once VL1 has flow control again",
        record.on_lane(5, 0, (ms(850), ms(1_600))),
        1,
    )?;
    let after = in_ms(after);
    Ok(format!("trained anew {after} after the silence began, once; then up again"))
}

/// IBFC-09.
pub fn lost_flow_control(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let passed = record.packets(6).on_lane(0).within((LOSSES.0, FLOOD.0)).psns();
    let expected: Vec<u32> = (0..LOSSES_FRAMES).map(|psn| 1_000 + psn).collect();
    ensure!(passed == expected, "{} of {LOSSES_FRAMES} packets passed", passed.len());
    lossless(&record)?;
    let fabric = on.only_engine(accounts::lossy_fabric)?;
    Ok(format!("k = 2 to 10: all {LOSSES_FRAMES} packets once and in order{fabric}"))
}

/// IBFC-10.
pub fn old_flow_control(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let counts = record.lines[3];
    let (repeated, overtaken) = old(on);
    same("repeated words counted", counts.duplicates, repeated)?;
    same("late words counted", counts.stale, overtaken)?;
    remains_shut(&record)?;
    Ok(format!(
        "words repeated later ({repeated} duplicates) and overtaken ({overtaken} stale) open nothing"
    ))
}

fn remains_shut(record: &Record) -> Result<()> {
    let slack = us(300);
    let early = record.on_lane(4, 0, (SHUT.0 + slack, SHUT.1));
    same("packets that leave by the shut port", early, 0)?;
    let late = record.on_lane(4, 0, (SHUT.1, TRAINING[2]));
    same("packets that leave once it is open", late as u32, SHUT_FRAMES)
}

/// IBFC-11.
pub fn damaged_flow_control(on: Level) -> Finding {
    let record = RUN.on(on)?;
    same("damaged words counted", record.drops(4, DropReason::Lpcrc), BITS as u64)?;
    remains_shut(&record)?;
    Ok(format!("each of {BITS} bits flipped once: {BITS} counted under lpcrc, no credit taken"))
}

/// IBFC-12.
pub fn management_lane(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let (from, to) = FLOOD;
    let flooded = record.on_lane(2, 15, (from, to));
    let lost: u64 =
        [1, 4].map(|port| record.drops(port, DropReason::ManagementOverrun)).iter().sum();
    same("VL15 packets sent or counted", flooded + lost, 2 * u64::from(FLOOD_PACKETS))?;
    ensure!(flooded >= u64::from(FLOOD_PACKETS), "only {flooded} passed the flood");
    ensure!(lost > 0, "two lines went into one, and nothing was counted as overrun");
    same("data packets without credit", record.on_lane(2, 0, (from, to)), 0)?;
    let elsewhere = record.on_lane(6, 0, (from, Instant::NEVER)) as u32;
    same("data packets of another port", elsewhere, ELSEWHERE)?;
    for port in 1..=6 {
        same("flow control of VL15", record.flow_control(port, 15).count(), 0)?;
    }
    let beside = record.on_lane(2, 15, (to, Instant::NEVER)) as u32;
    same("VL15 packets beside data", beside, BESIDE)?;
    let soon = to + us(20_000);
    same("data packets beside VL15", record.on_lane(2, 0, (to, soon)), 3)?;
    Ok(format!("without credit for data: {flooded} sent, {lost} overrun; then beside data"))
}
