//! ROCE-09 to ROCE-13: what CNPs do to a sender: its rate as the NIC reports it, beside [`crate::reference`],
//! and what it sends, read off its line.

use crate::ethernet::dcqcn;
use crate::ethernet::*;
use crate::prelude::*;
use crate::reference::{Happening, Numbers, Reference};
use testbed::frames::ethernet::cnp;

/// The line of the cases that read the rate.
const LINE: BitRate = BitRate::gbps(8);

/// Rates are whole bit/s at each step: a trace may differ from one that never rounds by so much.
const ROUNDING: f64 = 2.0;

fn at_us(n: u64) -> Instant {
    Instant::ZERO + us(n)
}

/// A NIC on a line of 8 Gb/s with an endless backlog for adapter 2.
fn sending(params: &str) -> Result<Bench> {
    let rest = vast() + &dcqcn(params) + &backlog("flow", "h1", "h2", "");
    let star = Star { nics: 2, rate: "8 Gbps", rest: &rest, ..STAR };
    Stage::new(Level::Engine, &star.text(), "h1")?.bench()
}

/// RC as the NIC reports it. Units: bit/s.
fn rate(bench: &mut Bench) -> Result<u64> {
    let reading = bench.reading();
    let flow = reading.flows.first().ok_or("the NIC has no flow")?;
    Ok(flow.rate.value)
}

/// The numbers that most cases have.
const NUMBERS: Numbers = Numbers {
    line: 8e9,
    gain: 1.0 / 256.0,
    alpha_interval: us(55),
    alpha_first: false,
    time: us(55),
    octets: 10_000_000,
    stages: 5,
    additive: 40e6,
    hyper: 400e6,
    least: 20e6,
};

/// The same parameters as keys of a scenario file.
fn params(numbers: &Numbers) -> String {
    let order = if numbers.alpha_first { "alpha-cut" } else { "cut-alpha" };
    let length = |time: Duration| time.as_ps() / 1_000_000;
    format!(
        "g = {}\nalpha_interval = \"{} us\"\ncnp_order = \"{order}\"\ntime_reset = \"{} us\"\n\
         byte_reset = \"{} B\"\nstages = {}\nrate_ai = \"{} Mbps\"\nrate_hai = \"{} Mbps\"\n\
         rate_min = \"{} Mbps\"",
        numbers.gain,
        length(numbers.alpha_interval),
        length(numbers.time),
        numbers.octets,
        numbers.stages,
        numbers.additive / 1e6,
        numbers.hyper / 1e6,
        numbers.least / 1e6,
    )
}

/// Runs a sender that receives a CNP at each of `cnps`, and holds its rate against the reference at each
/// of `samples`; the reference at the end.
fn traced(numbers: Numbers, cnps: &[Instant], samples: &[Instant]) -> Result<Reference> {
    let mut bench = sending(&params(&numbers))?;
    let mut rates = Vec::new();
    let mut stops: Vec<Instant> = cnps.iter().chain(samples).copied().collect();
    stops.sort();
    stops.dedup();
    for stop in stops {
        bench.run_until(stop);
        if samples.contains(&stop) {
            rates.push((stop, rate(&mut bench)?));
        }
        if cnps.contains(&stop) {
            bench.inject(1, cnp(2, 1));
        }
    }
    // The frame on the line belongs to it as well.
    bench.run_for(us(500));
    let sent = OnLine::all(bench.line(1), LINE);
    let frames = sent
        .iter()
        .map(|sent| (sent.start, Happening::Frame(sent.end, sent.frame.line_size().get())));
    let mut happenings: Vec<_> =
        frames.chain(cnps.iter().map(|at| (*at, Happening::Cnp))).collect();
    happenings.sort();
    let mut happenings = happenings.into_iter().peekable();
    let mut reference = Reference::new(numbers);
    for (at, found) in rates {
        while let Some((when, what)) = happenings.next_if(|(when, _)| *when < at) {
            reference.advance(when);
            reference.happens(what, when);
        }
        reference.advance(at);
        let expected = reference.current;
        near(format!("bit/s at {at}"), found as f64, expected, ROUNDING)?;
    }
    Ok(reference)
}

/// Samples every so often up to `end`.
fn every(step: Duration, end: Instant) -> Vec<Instant> {
    let count = end.since(Instant::ZERO).as_ps() / step.as_ps();
    (1..=count).map(|n| Instant::ZERO + step * n).collect()
}

/// ROCE-09: two CNPs 60 µs apart, in both orders; then many.
pub fn cut(_: Level) -> Finding {
    let first = at_us(20);
    let second = first + us(60);
    let mut found = Vec::new();
    for (name, alpha_first) in [("cut-alpha", false), ("alpha-cut", true)] {
        let numbers = Numbers { alpha_first, ..NUMBERS };
        let mut bench = sending(&params(&numbers))?;
        bench.run_until(first);
        let before = rate(&mut bench)?;
        bench.inject(1, cnp(2, 1));
        let halved = rate(&mut bench)?;
        bench.run_until(second);
        let recovered = rate(&mut bench)?;
        bench.inject(1, cnp(2, 1));
        let cut = rate(&mut bench)?;
        // α: 1, fallen once to 255/256, and if it rises first to (255/256)² + 1/256.
        let alpha = |of: f64| if alpha_first { of * 255.0 / 256.0 + 1.0 / 256.0 } else { of };
        let expected = [8e9, 4e9, 6e9, 6e9 * (1.0 - alpha(255.0 / 256.0) / 2.0)];
        for (rate, expected) in [before, halved, recovered, cut].into_iter().zip(expected) {
            ensure!((rate as f64 - expected).abs() <= 1.0, "{name}: {rate} bit/s, not {expected}");
        }
        found.push(format!("{name} {cut}"));
        // A CNP every 7 µs for a while: α rises again, and the rate falls to its least.
        let many: Vec<_> = (0..60).map(|n| at_us(500 + 7 * n)).collect();
        let cnps = [&[first, second], &many[..]].concat();
        let samples = every(us(5), at_us(1_200));
        let reference = traced(numbers, &cnps, &samples)?;
        ensure!(reference.counts[0] > 5, "the trace has no recovery in it");
    }
    Ok(format!("8, 4 and 6 Gb/s; after the second CNP {}; and a trace of 62", found.join(", ")))
}

/// ROCE-10: CNPs k intervals after the first.
pub fn alpha_decay(_: Level) -> Finding {
    let intervals = [0, 1, 2, 3, 10, 50, 200, 1_000];
    for k in intervals {
        let mut bench = sending(&params(&NUMBERS))?;
        bench.run_until(at_us(20));
        bench.inject(1, cnp(2, 1));
        // As the last interval ends, or just before the next one does.
        let late = if k % 2 == 0 { 54 } else { 0 };
        bench.run_until(at_us(20 + 55 * k + late));
        let before = rate(&mut bench)? as f64;
        bench.inject(1, cnp(2, 1));
        let found = rate(&mut bench)?;
        let alpha = (255.0f64 / 256.0).powi(k as i32);
        let expected = before * (1.0 - alpha / 2.0);
        near(format!("{k} intervals, from {before}"), found as f64, expected, 1.0)?;
    }
    Ok(format!("a CNP after k = {intervals:?} intervals takes (255/256)^k / 2 off"))
}

/// ROCE-11: by the timer alone, by octets alone, and by both into hyper increase.
pub fn recovery(_: Level) -> Finding {
    let cnps = [at_us(20), at_us(21), at_us(22), at_us(3_000)];
    let samples = |end| every(Duration::from_ns(27_500), at_us(end));
    let by_time = traced(NUMBERS, &cnps, &samples(8_000))?;
    let octets = Numbers { octets: 150_000, time: us(100_000), ..NUMBERS };
    let by_octets = traced(octets, &cnps, &samples(12_000))?;
    let both = Numbers { octets: 50_000, ..NUMBERS };
    // A sixth of the line for a target, so that there is room to grow.
    let many: Vec<_> = (0..4).map(|n| at_us(20 + n)).collect();
    let by_both = traced(both, &many, &samples(6_000))?;
    let [.., hyper] = by_both.counts;
    same("stages by the timer", by_time.counts[..2].iter().all(|count| *count >= 5), true)?;
    let stages = [by_octets.counts, by_both.counts];
    ensure!(stages[0][1] > 0 && hyper > 0, "stages by octets and by both: {stages:?}");
    fast_recovery_halves_the_gap()?;
    Ok(format!(
        "stages {:?} by the timer, {:?} by octets, {:?} by both",
        by_time.counts, by_octets.counts, by_both.counts
    ))
}

/// Checks the gap itself: five halvings after one cut, and then nothing is left of it to see.
fn fast_recovery_halves_the_gap() -> Result<()> {
    let mut bench = sending(&params(&NUMBERS))?;
    bench.run_until(at_us(20));
    bench.inject(1, cnp(2, 1));
    for stage in 0..=5u64 {
        bench.run_until(at_us(20 + 55 * stage));
        let gap = 8_000_000_000 - rate(&mut bench)?;
        let expected = 4_000_000_000 >> stage;
        ensure!(gap == expected, "the gap after {stage} stages is {gap}, not {expected}");
    }
    Ok(())
}

/// ROCE-12: the rate as the NIC reports it at once and 4 µs after one CNP for a fresh flow, by profile.
fn by_profile() -> Result<String> {
    let period = us(4);
    let by_tenth_bits = 8e9 * (1.0 - 1_004.0 / 1_024.0 / 2.0);
    let by_power = 8e9 * (1.0 - (255.0f64 / 256.0).powi(4) / 2.0);
    let rows = [
        ("profile = \"paper\"", 4e9, 4e9),
        ("profile = \"cx\"", 8e9, by_tenth_bits),
        ("profile = \"hpcc\"", 8e9, by_power),
        ("profile = \"cx\"\nfirst_cnp_rate = 0.25", 2e9, 2e9 * (1.0 - 1_004.0 / 1_024.0 / 2.0)),
    ];
    let mut found = Vec::new();
    for (params, at_once, later) in rows {
        let mut bench = sending(params)?;
        bench.run_until(at_us(20));
        bench.inject(1, cnp(2, 1));
        let first = rate(&mut bench)?;
        bench.run_until(at_us(20) + period);
        let second = rate(&mut bench)?;
        for (when, rate, expected) in [("at once", first, at_once), ("after 4 µs", second, later)]
        {
            near(format!("{params}: {when}"), rate as f64, expected, 1.0)?;
        }
        found.push(format!("{}: {first}, {second}", params.replace('\n', ", ")));
    }
    Ok(format!("; bit/s at once and 4 µs after the first CNP: {}", found.join("; ")))
}

/// Nothing but CNPs changes the rate: neither timer nor counter nor the fall of α.
const STILL: &str = "time_reset = \"100 s\"\nbyte_reset = \"0 B\"\nalpha_interval = \"100 s\"";
/// With profile cx: a quarter at once, and a cut when a period of 200 ms is over.
const DECLARED: &str =
    "profile = \"cx\"\nfirst_cnp_rate = 0.25\ncut_period = \"200 ms\"\ncut_max = 0.5";

static PAPER: Shared<Record> =
    Shared::new(|on| notified(on, ("profile = \"paper\"", 2048), "700 ms", 1));
static CX: Shared<Record> = Shared::new(|on| notified(on, (DECLARED, 2048), "900 ms", 1));
/// Hundredths of the line, and how long they are looked at. Source: the case; 10 s there.
static LIMITS: [(u64, Shared<Record>); 3] = [
    (1, Shared::new(|on| limited(on, "0.1 Mbps", ["6500 ms", "20 s"]))),
    (10, Shared::new(|on| limited(on, "1 Mbps", ["3500 ms"; 2]))),
    (50, Shared::new(|on| limited(on, "5 Mbps", ["2500 ms"; 2]))),
];

/// When CNPs come.
const NOTIFIED: Instant = ms(300);

/// A NIC held at its least rate sends full and short frames in turn; the durations are those of live runs and of
/// the virtual clock.
fn limited(on: Level, least: &str, [live, engine]: [&str; 2]) -> Result<Record> {
    let duration = if on == Level::Live { live } else { engine };
    notified(on, (&format!("rate_min = \"{least}\""), 2_148), duration, 10)
}

/// A NIC with a backlog of messages of so many octets receives `count` CNPs.
fn notified(on: Level, (params, size): (&str, u64), duration: &str, count: u32) -> Result<Record> {
    let keys = format!(
        "arrivals = \"backlog\"\nsize = \"{size} B\"\ntransport = \"uc\"\nstart = \"100 ms\""
    );
    let scheme = dcqcn(&format!("{STILL}\n{params}"));
    let rest = roomy("") + &scheme + &traffic("flow", "h1", "h2", &keys);
    play(on, &star(2, duration, "", &rest), "h1", |script| {
        script.at(NOTIFIED, move |bed| {
            (0..count).for_each(|_| bed.send_frame(1, &cnp(2, 1)));
        });
    })
}

/// From the start of one frame to the start of the next, of those that start in `[from, to)`.
fn gaps(record: &Record, from: Instant, to: Instant) -> Vec<Duration> {
    let starts = record.data(1, LOSSLESS).starts(RATE).into_iter();
    let here: Vec<Instant> = starts.filter(|at| *at >= from && *at < to).collect();
    here.windows(2).map(|pair| pair[1].since(pair[0])).collect()
}

/// The mean gap, in hundredths of what a frame takes.
fn mean(record: &Record, from: Instant, to: Instant) -> Result<u64> {
    let gaps = gaps(record, from, to);
    ensure!(gaps.len() > 3, "only {} frames between {from} and {to}", gaps.len());
    let sum: u64 = gaps.iter().map(|gap| gap.as_ps()).sum();
    Ok(sum * 100 / gaps.len() as u64 / FRAME_TIME.as_ps())
}

/// ROCE-12.
pub fn first_cnp(on: Level) -> Finding {
    let mut lines = Vec::new();
    let soon = NOTIFIED + us(10_000);
    let periods: [(&str, &Shared<Record>, Instant, Instant, u64); 5] = [
        ("paper before", &PAPER, ms(120), NOTIFIED, 100),
        ("paper after", &PAPER, soon, ms(690), 200),
        ("cx before", &CX, ms(120), NOTIFIED, 100),
        ("cx at once", &CX, soon, NOTIFIED + us(190_000), 400),
        ("cx after a period", &CX, NOTIFIED + us(230_000), ms(890), 800),
    ];
    for (what, cached, from, to, expected) in periods {
        let record = cached.on(on)?;
        let found = mean(&record, from, to)?;
        near(format!("{what}: hundredths"), found, expected, expected / 50)?;
        lines.push(format!("{what} {found}"));
    }
    let profiles = on.only_engine(by_profile)?;
    Ok(format!("hundredths of a frame's time from frame to frame: {}{profiles}", lines.join(", ")))
}

/// ROCE-13.
pub fn rate_limiter(on: Level) -> Finding {
    let mut lines = Vec::new();
    for (share, shared) in &LIMITS {
        let record = shared.on(on)?;
        // A frame may be late by the one that was under way.
        let from = NOTIFIED + FRAME_TIME * (100 / share * 2);
        let sent = OnLine::all(record.packets(1).since(from), RATE);
        ensure!(sent.len() >= 20, "only {} frames at {share} %", sent.len());
        let live = record.live.is_some();
        let mean = conforms(&sent[..sent.len().min(200)], RATE.get() * share / 100, live)?;
        lines.push(format!("{mean} bit/s for {share} %"));
    }
    Ok(format!("no window holds more than its share and a full frame; mean {}", lines.join(", ")))
}

/// Holds if no window has more than `bits` a second and a full frame, live two; the mean.
fn conforms(sent: &[OnLine<'_>], bits: u64, live: bool) -> Result<u128> {
    const SECOND: u128 = 1_000_000_000_000;
    let size = |sent: &OnLine<'_>| u128::from(sent.frame.line_size().get()) * 8;
    let burst = sent.iter().map(size).max().unwrap_or(0) * if live { 2 } else { 1 };
    for (first, from) in sent.iter().enumerate() {
        let mut total = 0;
        for to in &sent[first..] {
            total += size(to);
            let window = u128::from(to.end.since(from.start).as_ps());
            let allowed = u128::from(bits) * window / SECOND + burst;
            ensure!(total <= allowed, "frame {first}: {total} bits, {allowed} allowed");
        }
    }
    let [first, .., last] = sent else { return Ok(0) };
    // From the first bit of one to the first bit of another.
    let all: u128 = sent.iter().map(size).sum::<u128>() - size(last);
    let mean = all * SECOND / u128::from(last.start.since(first.start).as_ps());
    let parts = if live { 50 } else { 10_000 };
    near("the mean in bit/s", mean, bits.into(), u128::from(bits) / parts)?;
    Ok(mean)
}
