//! What BECN does to a sender: its index, its timer, and the gaps it leaves on the line.

use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, MTU, RATE, burst, class, nic};
use crate::bench::line::{OnLine, line, never_idle, paced, packets};
use crate::bench::packets::{frame, with_opcode};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{NicConfig, TrafficConfig, Transport};
use nicd::nic::Nic;
use proto::counters::FlowReading;
use proto::events::EventKind;
use proto::ids::{Lid, QueuePairNumber};
use proto::units::{BitRate, Duration, Instant};
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};

/// When workloads start: links are up by then.
const START: Instant = Instant::from_ps(100_000_000);
/// One unit of CCTI_Timer. Source: IBTA Vol 1, annex A10 (1.024 µs).
const TIMER_UNIT: Duration = Duration::from_ns(1_024);

/// A NIC with LID 1 that sends by UC on service level 0: only BECNs come back, when the case says.
fn bench(traffic: Vec<TrafficConfig>, params: &str) -> Result<Bench<Nic>, Failure> {
    let classes = vec![class(Transport::Uc, 0)];
    bench_of(NicConfig { traffic, classes, ..nic(1, 1) }, params)
}

fn bench_of(mut config: NicConfig, params: &str) -> Result<Bench<Nic>, Failure> {
    config.scheme.kind = "ib-cca".to_owned();
    config.scheme.params = params.parse().map_err(|error| format!("{params}: {error}"))?;
    let lanes = config.link.data_lanes();
    Bench::up(Nic::new(config).map_err(|error| error.to_string())?, lanes)
}

/// LID `from` returns `n` BECNs, each as a CN of its own, all now.
fn becn(bench: &mut Bench<Nic>, from: u16, n: u32) {
    let plain = with_opcode(Opcode::CNP, from, 1, 0);
    let bth = Bth { becn: true, ack_request: false, ..plain.bth };
    for _ in 0..n {
        bench.send(1, frame(&PacketBuilder { bth, ..plain }, 16));
    }
}

fn flow(bench: &mut Bench<Nic>, to: u16) -> Result<FlowReading, Failure> {
    let flows = bench.reading().flows;
    let found = flows.into_iter().find(|flow| flow.flow.destination == u64::from(to));
    found.ok_or_else(|| Failure::Failed(format!("the NIC has no flow to LID {to}")))
}

fn ccti(bench: &mut Bench<Nic>, to: u16) -> Result<u64, Failure> {
    Ok(flow(bench, to)?.scalar)
}

/// The delay that a table entry stands for, after a packet of `octets` at `rate`: the packet's time
/// to the nearest picosecond, shifted right with its fraction cut off, then multiplied.
fn ipd(octets: u64, rate: BitRate, shift: u32, multiplier: u64) -> Duration {
    let bits = u128::from(octets) * 8 * 1_000_000_000_000;
    let packet_time = ((bits + u128::from(rate.get()) / 2) / u128::from(rate.get())) as u64;
    Duration::from_ps((packet_time >> shift) * multiplier)
}

pub(super) fn becns_raise_the_index_by_the_increase_up_to_the_limit() -> Finding {
    let mut told = 0;
    for (increase, limit, minimum) in
        [(1, 127, 0), (5, 127, 0), (5, 12, 0), (127, 127, 0), (40, 100, 7)]
    {
        let params = |scope: &str| {
            format!(
                "ccti_increase = {increase}\nccti_limit = {limit}\nccti_min = {minimum}\n\
                 ccti_timer = 65535\nscope = \"{scope}\""
            )
        };
        let both = vec![burst(2, 0, 64, 1, START), burst(3, 0, 64, 1, START)];
        for scope in ["queue-pair", "service-level"] {
            let mut bench = bench(both.clone(), &params(scope))?;
            bench.run_until(START + FRAME_TIME);
            for n in 1..=30u64 {
                // Every third goes to the other queue pair.
                let to = if n % 3 == 0 { 3 } else { 2 };
                becn(&mut bench, to, 1);
                for flow in [2, 3] {
                    let own = if flow == 3 { n / 3 } else { n - n / 3 };
                    let counted = if scope == "queue-pair" { own } else { n };
                    let expected = (minimum + counted * increase).min(limit);
                    let what = format!(
                        "CCTI of the flow to LID {flow} after {n} BECNs, increase {increase}, limit {limit}, scope {scope}"
                    );
                    same(what, ccti(&mut bench, flow)?, expected)?;
                    told += 1;
                }
            }
        }
    }
    Ok(format!(
        "{told} readings of min(CCTI_Limit, CCTI_Min + n × CCTI_Increase), by queue pair and by level"
    ))
}

pub(super) fn the_timer_lowers_the_index_by_one_a_period_to_the_minimum() -> Finding {
    let period = TIMER_UNIT * 31;
    let late = START + period * 30;
    let traffic = vec![burst(2, 0, 64, 1, START), burst(2, 0, MTU as u64, 5, late)];
    let mut bench = bench(traffic, "ccti_increase = 5\nccti_timer = 31")?;
    bench.run_until(START + FRAME_TIME);
    becn(&mut bench, 2, 1);
    let first = bench.now();
    // The second BECN does not restart the timer of the first.
    bench.run_for(Duration::from_us(10));
    becn(&mut bench, 2, 1);
    same("CCTI after two BECNs of 5", ccti(&mut bench, 2)?, 10)?;
    let mut after = |periods: u64, expected: u64| {
        bench.run_until(Instant::from_ps((first + period * periods).as_ps() - 1));
        same(
            format!("CCTI just before {periods} periods"),
            ccti(&mut bench, 2)?,
            (expected + 1).min(10),
        )?;
        bench.run_until(first + period * periods);
        same(format!("CCTI after {periods} periods"), ccti(&mut bench, 2)?, expected)
    };
    after(1, 9)?;
    after(5, 5)?;
    after(10, 0)?;
    bench.run_until(first + period * 20);
    same("CCTI after 20 periods", ccti(&mut bench, 2)?, 0)?;
    bench.forget();
    bench.run_until(late + FRAME_TIME * 6);
    let sent = line(bench.line(1), RATE);
    let gaps = paced(&sent, |_| true, |_| Duration::ZERO)?;
    same("gaps of the burst at CCTI 0", gaps, 4)?;
    Ok("CCTI 10: 9 after one period of 31.744 µs from the first BECN, 5 after 5, 0 after 10 and 20, then 5 packets without a gap".to_owned())
}

pub(super) fn the_gap_after_a_packet_is_its_time_shifted_and_multiplied() -> Finding {
    let mut gaps = 0;
    let entries = [(0, 0), (0, 1), (0, 3), (1, 5), (2, 7), (3, 12), (3, 1), (3, 248), (0, 1_000)];
    for rate in [RATE, BitRate::gbps(56)] {
        for (shift, multiplier) in entries {
            let mut config = nic(1, 1);
            config.link.rate = rate;
            config.classes = vec![class(Transport::Uc, 0)];
            // One small, one large, in turn: each posted a picosecond after the one before.
            let item = |size: u64, offset: u64| TrafficConfig {
                interval: Duration::from_ps(2),
                ..burst(2, 0, size, 10, START + Duration::from_ps(offset))
            };
            config.traffic = vec![item(256, 0), item(MTU as u64, 1)];
            let entry = u64::from(shift) << 14 | multiplier;
            let mut bench =
                bench_of(config, &format!("cct = [0, {entry}]\nccti_min = 1\nccti_limit = 1"))?;
            bench.neighbour(1).refresh = Duration::from_us(100);
            let whole = FRAME_TIME * 20 + ipd(282 + 2074, rate, shift, multiplier) * 11;
            bench.run_until(START + whole);
            let sent = line(bench.line(1), rate);
            let delay =
                |frame: &OnLine<'_>| ipd(frame.frame.octets.len() as u64, rate, shift, multiplier);
            let found = paced(&sent, |_| true, delay).map_err(|failure| match failure {
                Failure::Failed(reason) => Failure::Failed(format!(
                    "shift {shift}, multiplier {multiplier}, {rate}: {reason}"
                )),
                other => other,
            })?;
            same(format!("gaps at shift {shift}, multiplier {multiplier}"), found, 19)?;
            gaps += found;
        }
    }
    Ok(format!(
        "{gaps} gaps, 282 and 2074 octets in turn, 9 entries, 8 and 56 Gb/s: (packet time >> shift) × multiplier to the picosecond"
    ))
}

pub(super) fn a_second_of_idle_time_buys_no_burst() -> Finding {
    let late = START + Duration::from_us(1_000_000);
    let traffic = vec![burst(2, 0, MTU as u64, 3, START), burst(2, 0, MTU as u64, 12, late)];
    // A gap of three packet times, whatever happens.
    let mut bench = bench(traffic, "cct = [0, 3]\nccti_min = 1\nccti_limit = 1")?;
    bench.neighbour(1).refresh = Duration::from_us(500);
    bench.run_until(START + FRAME_TIME * 20);
    let delay = |_: &OnLine<'_>| FRAME_TIME * 3;
    same("gaps before the idle time", paced(&line(bench.line(1), RATE), |_| true, delay)?, 2)?;
    bench.run_until(Instant::from_ps(late.as_ps() - 1));
    bench.forget();
    bench.run_until(late + FRAME_TIME * 60);
    let sent = line(bench.line(1), RATE);
    let first =
        packets(&sent).next().ok_or_else(|| "nothing left after the idle time".to_owned())?;
    let blocked = sent.iter().map(|frame| frame.end).filter(|end| *end <= first.start).max();
    same("the start of the first packet", first.start, late.max(blocked.unwrap_or(late)))?;
    let gaps = paced(&sent, |_| true, delay)?;
    same("full gaps after it", gaps, 11)?;
    Ok("after 1 s: the first packet at once, then 11 gaps of exactly three packet times".to_owned())
}

/// The destinations, in order, of what leaves in the 64 frame times after a BECN for LID 2; LIDs 2
/// and 3 are sent to without end on one service level. Also the line itself.
fn beside(scope: &str) -> Result<Bench<Nic>, Failure> {
    let traffic = vec![burst(2, 0, MTU as u64, 0, START), burst(3, 0, MTU as u64, 0, START)];
    let params = format!(
        "scope = \"{scope}\"\ncct = [0, 3]\nccti_increase = 1\nccti_limit = 1\nccti_timer = 65535"
    );
    let mut bench = bench(traffic, &params)?;
    bench.run_until(START + FRAME_TIME * 8);
    becn(&mut bench, 2, 1);
    // What was on the line has left.
    bench.run_for(FRAME_TIME * 2);
    bench.forget();
    bench.run_for(FRAME_TIME * 64);
    Ok(bench)
}

pub(super) fn by_queue_pair_one_is_slowed_and_by_level_both() -> Finding {
    let bench = beside("queue-pair")?;
    let sent = line(bench.line(1), RATE);
    never_idle(&sent)?;
    let to: Vec<u16> = packets(&sent).map(OnLine::to).collect();
    let first = to.iter().position(|lid| *lid == 2).unwrap_or(0);
    let turns = to[first..].chunks_exact(4).filter(|turn| *turn == [2, 3, 3, 3]).count();
    same("turns of one packet to LID 2 and three to LID 3", turns, (to.len() - first) / 4)?;
    let hot = to.iter().filter(|lid| **lid == 2).count();
    let text = format!(
        "by queue pair {hot} of {} packets are of the slowed one, the line never idle",
        to.len()
    );
    ensure(turns >= 14, || format!("only {turns} turns were seen"))?;
    let bench = beside("service-level")?;
    let sent = line(bench.line(1), RATE);
    let gaps = paced(&sent, |_| true, |_| FRAME_TIME * 3)?;
    let to: Vec<u16> = packets(&sent).map(OnLine::to).collect();
    ensure(gaps >= 14, || format!("only {gaps} gaps were seen"))?;
    let turns = to.chunks_exact(2).filter(|turn| turn[0] != turn[1]).count();
    same("turns of both queue pairs", turns, to.len() / 2)?;
    Ok(format!("{text}; by level all {} share one pace of a packet in four packet times", to.len()))
}

pub(super) fn crossing_the_trigger_is_logged_once() -> Finding {
    let mut config = nic(1, 4);
    config.classes = vec![class(Transport::Uc, 2)];
    config.traffic = vec![burst(2, 0, 64, 1, START)];
    let params = "ccti_increase = 3\nccti_timer = 31\ntrigger_threshold = 10";
    let mut bench = bench_of(config, params)?;
    bench.run_until(START + FRAME_TIME);
    let logged = |bench: &Bench<Nic>| {
        let kinds = bench.events.iter().filter_map(|event| match event.kind {
            EventKind::Trigger { flow, qp, sl, ccti } => Some((flow, qp, sl, ccti)),
            _ => None,
        });
        kinds.collect::<Vec<_>>()
    };
    for (n, entries) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)] {
        becn(&mut bench, 2, 1);
        same(format!("log entries after {n} BECNs"), logged(&bench).len(), entries)?;
    }
    let (flow, qp, sl, ccti) = logged(&bench)[0];
    same("QPN logged", qp, QueuePairNumber::planned(0, Lid::new(2)))?;
    same("SL logged", sl.get(), 2)?;
    same("remote LID logged", flow.destination, 2)?;
    same("CCTI logged", ccti, 12)?;
    // Down from 18 to 9 and over the threshold again: another entry.
    bench.run_for(TIMER_UNIT * 31 * 9);
    becn(&mut bench, 2, 1);
    same("log entries after a second crossing", logged(&bench).len(), 2)?;
    let reading = bench.reading();
    let counter = reading.ports[0].named.iter().find(|(name, _)| name == "rp_trigger_events");
    same("entries counted", counter.map_or(0, |(_, n)| *n), 2)?;
    Ok(format!(
        "threshold 10, steps of 3: one entry at CCTI 12 with QPN {:#08x}, SL 2, remote LID 2; another at the next crossing",
        qp.get()
    ))
}
