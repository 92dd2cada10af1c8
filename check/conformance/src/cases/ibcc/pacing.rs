//! IBCC-09, IBCC-10, IBCC-12, IBCC-13 and IBCC-15 on the virtual clock: what BECN does to a sender: its index,
//! its timer, and the gaps on its line.

use crate::prelude::*;
use proto::counters::FlowReading;
use testbed::frames::infiniband::Packet;

/// The line, the largest payload, and the time of a full frame.
const RATE: BitRate = BitRate::gbps(8);
const MTU: u64 = 2048;
const FRAME_TIME: Duration = Duration::from_ns(2_074);

/// When workloads start: links are up by then.
const START: Instant = Instant::from_ps(100_000_000);
/// One unit of CCTI_Timer. Source: IBTA Vol 1, annex A10 (1.024 µs).
const TIMER_UNIT: Duration = Duration::from_ns(1_024);

/// A NIC with LID 1 that sends by UC on service level 0: only the BECNs of the case come back.
fn bench(rate: &str, traffic: &str, params: &str) -> Result<Bench> {
    let rest = format!("{traffic}[scheme]\nkind = \"ib-cca\"\n{params}\n");
    let star = Star { rate, duration: "2 s", rest: &rest, ..Star::FAST };
    Ok(Stage::new(Level::Engine, &star.text(), "h1")?.bench()?.up()?)
}

/// `messages` of `size` octets to LID `to`, posted `after` ps behind [`START`]; 0 means no end.
fn burst(to: u16, size: u64, messages: u64, after: u64) -> String {
    let start = START.as_ps() + after;
    let count = if messages > 0 { format!("messages = {messages}\n") } else { String::new() };
    let keys = format!(
        "transport = \"uc\"\narrivals = \"backlog\"\nsize = \"{size} B\"\n{count}\
         start = \"{}.{:03} ns\"",
        start / 1_000,
        start % 1_000
    );
    traffic(&format!("to{to}-{size}-{after}"), "h1", &format!("h{to}"), &keys)
}

/// LID `from` returns `n` BECNs, each as a CN of its own, all now.
fn becn(bench: &mut Bench, from: u16, n: u32) {
    (0..n).for_each(|_| bench.inject(1, Packet { payload: 16, ..Packet::cnp(from, 1) }.frame()));
}

fn flow(bench: &mut Bench, to: u16) -> Result<FlowReading> {
    let flows = bench.reading().flows;
    let found = flows.into_iter().find(|flow| flow.flow.destination == u64::from(to));
    found.ok_or_else(|| Failure::Failed(format!("the NIC has no flow to LID {to}")))
}

fn ccti(bench: &mut Bench, to: u16) -> Result<u64> {
    Ok(flow(bench, to)?.scalar)
}

/// The delay that a table entry stands for, after a packet of `octets` at `rate`: the packet's time
/// to the nearest picosecond, shifted right with its fraction cut off, then multiplied.
fn ipd(octets: u64, rate: BitRate, shift: u32, multiplier: u64) -> Duration {
    let bits = u128::from(octets) * 8 * 1_000_000_000_000;
    let packet_time = ((bits + u128::from(rate.get()) / 2) / u128::from(rate.get())) as u64;
    Duration::from_ps((packet_time >> shift) * multiplier)
}

/// IBCC-09.
pub fn index_arithmetic(_: Level) -> Finding {
    let mut checked = 0;
    for (increase, limit, minimum) in
        [(1, 127, 0), (5, 127, 0), (5, 12, 0), (127, 127, 0), (40, 100, 7)]
    {
        let params = |scope: &str| {
            format!(
                "ccti_increase = {increase}\nccti_limit = {limit}\nccti_min = {minimum}\n\
                 ccti_timer = 65535\nscope = \"{scope}\""
            )
        };
        let both = burst(2, 64, 1, 0) + &burst(3, 64, 1, 0);
        for scope in ["queue-pair", "service-level"] {
            let mut bench = bench("8 Gbps", &both, &params(scope))?;
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
                    checked += 1;
                }
            }
        }
    }
    Ok(format!("{checked} readings of min(CCTI_Limit, CCTI_Min + n × CCTI_Increase)"))
}

/// IBCC-10.
pub fn recovery_timer(_: Level) -> Finding {
    let period = TIMER_UNIT * 31;
    let late = START + period * 30;
    let traffic = burst(2, 64, 1, 0) + &burst(2, MTU, 5, late.since(START).as_ps());
    let mut bench = bench("8 Gbps", &traffic, "ccti_increase = 5\nccti_timer = 31")?;
    bench.run_until(START + FRAME_TIME);
    becn(&mut bench, 2, 1);
    let first = bench.now();
    // The second BECN does not restart the timer of the first.
    bench.run_for(us(10));
    becn(&mut bench, 2, 1);
    same("CCTI after two BECNs of 5", ccti(&mut bench, 2)?, 10)?;
    let mut after = |periods: u64, expected: u64| {
        bench.run_until(Instant::from_ps((first + period * periods).as_ps() - 1));
        let what = format!("CCTI just before {periods} periods");
        same(what, ccti(&mut bench, 2)?, (expected + 1).min(10))?;
        bench.run_until(first + period * periods);
        same(format!("CCTI after {periods} periods"), ccti(&mut bench, 2)?, expected)
    };
    after(1, 9)?;
    after(5, 5)?;
    after(10, 0)?;
    bench.run_until(first + period * 20);
    same("CCTI after 20 periods", ccti(&mut bench, 2)?, 0)?;
    bench.clear();
    bench.run_until(late + FRAME_TIME * 6);
    let sent = OnLine::all(bench.line(1), RATE);
    let gaps = OnLine::paced(&sent, |_| Duration::ZERO)?;
    same("gaps of the burst at CCTI 0", gaps, 4)?;
    Ok("CCTI 10: 9 after one period of 31.744 µs from the first BECN, 5 after 5, 0 after 10 and 20, then 5 packets without a gap".into())
}

/// IBCC-12, gap by gap.
pub fn every_gap() -> Result<String> {
    let mut gaps = 0;
    let entries = [(0, 0), (0, 1), (0, 3), (1, 5), (2, 7), (3, 12), (3, 1), (3, 248), (0, 1_000)];
    for (text, rate) in [("8 Gbps", RATE), ("56 Gbps", BitRate::gbps(56))] {
        for (shift, multiplier) in entries {
            // One small, one large, in turn: each posted a picosecond after the one before.
            let traffic = (0..10).map(|n| burst(2, 256, 1, 2 * n) + &burst(2, MTU, 1, 2 * n + 1));
            let entry = u64::from(shift) << 14 | multiplier;
            let params = format!("cct = [0, {entry}]\nccti_min = 1\nccti_limit = 1");
            let mut bench = bench(text, &traffic.collect::<String>(), &params)?;
            bench.credits(1).refresh = us(100);
            let whole = FRAME_TIME * 20 + ipd(282 + 2074, rate, shift, multiplier) * 11;
            bench.run_until(START + whole);
            let sent = OnLine::all(bench.line(1), rate);
            let delay =
                |frame: &OnLine<'_>| ipd(frame.frame.octets.len() as u64, rate, shift, multiplier);
            let found = OnLine::paced(&sent, delay).map_err(|reason| {
                format!("shift {shift}, multiplier {multiplier}, {rate}: {reason}")
            })?;
            same(format!("gaps at shift {shift}, multiplier {multiplier}"), found, 19)?;
            gaps += found;
        }
    }
    Ok(format!("{gaps} gaps are (packet time >> shift) × multiplier to the picosecond"))
}

/// IBCC-13.
pub fn no_banked_time(_: Level) -> Finding {
    let late = START + us(1_000_000);
    let traffic = burst(2, MTU, 3, 0) + &burst(2, MTU, 12, late.since(START).as_ps());
    // A gap of three packet times, whatever happens.
    let mut bench = bench("8 Gbps", &traffic, "cct = [0, 3]\nccti_min = 1\nccti_limit = 1")?;
    bench.credits(1).refresh = us(500);
    bench.run_until(START + FRAME_TIME * 20);
    let delay = |_: &OnLine<'_>| FRAME_TIME * 3;
    same("gaps before the idle time", OnLine::paced(&OnLine::all(bench.line(1), RATE), delay)?, 2)?;
    bench.run_until(Instant::from_ps(late.as_ps() - 1));
    bench.clear();
    bench.run_until(late + FRAME_TIME * 60);
    let sent = OnLine::all(bench.line(1), RATE);
    let first =
        sent.iter().find(|frame| frame.is_packet()).ok_or("nothing left after the idle time")?;
    let blocked = sent.iter().map(|frame| frame.end).filter(|end| *end <= first.start).max();
    same("the start of the first packet", first.start, late.max(blocked.unwrap_or(late)))?;
    let gaps = OnLine::paced(&sent, delay)?;
    same("full gaps after it", gaps, 11)?;
    Ok("after 1 s: the first packet at once, then 11 gaps of exactly three packet times".into())
}

/// IBCC-15: down and over the threshold again is another entry.
pub fn second_crossing() -> Result<&'static str> {
    let params = "ccti_increase = 3\nccti_timer = 31\ntrigger_threshold = 10";
    let mut bench = bench("8 Gbps", &burst(2, 64, 1, 0), params)?;
    bench.run_until(START + FRAME_TIME);
    let logged = |b: &Bench| b.events_of(|kind| matches!(kind, EventKind::Trigger { .. })).len();
    for (n, entries) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)] {
        becn(&mut bench, 2, 1);
        same(format!("log entries after {n} BECNs"), logged(&bench), entries)?;
    }
    // Down from 18 to 9.
    bench.run_for(TIMER_UNIT * 31 * 9);
    becn(&mut bench, 2, 1);
    same("log entries after a second crossing", logged(&bench), 2)?;
    same("entries counted", bench.named(1, "rp_trigger_events"), 2)?;
    Ok("; another at the next crossing")
}
