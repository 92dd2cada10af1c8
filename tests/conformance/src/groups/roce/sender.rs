//! ROCE-09 to ROCE-12: what CNPs do to a sender, beside [`super::reference`].

use super::bench_of_nic;
use super::reference::{Happening, Numbers, Reference};
use crate::bench::Bench;
use crate::bench::devices::ethernet::nic;
use crate::bench::devices::{MTU, RATE, burst, class};
use crate::bench::line::line;
use crate::bench::packets::ethernet::cnp;
use crate::case::{Failure, Finding, ensure};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::units::{Duration, Instant};

/// Rates are whole bit/s at each step: a trace may differ from one that never rounds by so much.
const ROUNDING: f64 = 2.0;

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

/// A NIC with an endless backlog for adapter 2.
fn sending(params: &str) -> Result<Bench<Nic>, Failure> {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, 0)];
    config.traffic = vec![burst(2, 0, MTU as u64, 0, Instant::ZERO)];
    bench_of_nic(config, params)
}

/// RC as the NIC tells it, in bit/s.
fn rate(bench: &mut Bench<Nic>) -> Result<u64, Failure> {
    let reading = bench.reading();
    let flow = reading.flows.first().ok_or_else(|| "the NIC has no flow".to_owned())?;
    Ok(flow.rate.value)
}

/// The numbers that most cases have.
const NUMBERS: Numbers = Numbers {
    line: 8e9,
    gain: 1.0 / 256.0,
    alpha_interval: Duration::from_us(55),
    alpha_first: false,
    time: Duration::from_us(55),
    octets: 10_000_000,
    stages: 5,
    additive: 40e6,
    hyper: 400e6,
    least: 20e6,
};

/// The same as the NIC is told them.
fn params(numbers: &Numbers) -> String {
    let order = if numbers.alpha_first { "alpha-cut" } else { "cut-alpha" };
    let us = |time: Duration| time.as_ps() / 1_000_000;
    format!(
        "g = {}\nalpha_interval = \"{} us\"\ncnp_order = \"{order}\"\ntime_reset = \"{} us\"\n\
         byte_reset = \"{} B\"\nstages = {}\nrate_ai = \"{} Mbps\"\nrate_hai = \"{} Mbps\"\n\
         rate_min = \"{} Mbps\"",
        numbers.gain,
        us(numbers.alpha_interval),
        us(numbers.time),
        numbers.octets,
        numbers.stages,
        numbers.additive / 1e6,
        numbers.hyper / 1e6,
        numbers.least / 1e6,
    )
}

/// Runs a sender that hears a CNP at each of `cnps`, and holds its rate against the reference at each
/// of `samples`; the reference at the end.
fn traced(numbers: Numbers, cnps: &[Instant], samples: &[Instant]) -> Result<Reference, Failure> {
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
    bench.run_for(Duration::from_us(500));
    let sent = line(bench.line(1), RATE);
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
        ensure((found as f64 - expected).abs() <= ROUNDING, || {
            format!("at {at} the rate is {found} bit/s, expected {expected:.1}")
        })?;
    }
    Ok(reference)
}

/// Samples every so often up to `end`.
fn every(step: Duration, end: Instant) -> Vec<Instant> {
    let count = end.since(Instant::ZERO).as_ps() / step.as_ps();
    (1..=count).map(|n| Instant::ZERO + step * n).collect()
}

/// ROCE-09: two CNPs 60 µs apart, in both orders; then many.
pub fn cut() -> Finding {
    let first = us(20);
    let second = first + Duration::from_us(60);
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
            ensure((rate as f64 - expected).abs() <= 1.0, || {
                format!("{name}: the rate is {rate} bit/s, expected {expected}")
            })?;
        }
        found.push(format!("{name} {cut}"));
        // A CNP every 7 µs for a while: α rises again, and the rate falls to its least.
        let many: Vec<_> = (0..60).map(|n| us(500 + 7 * n)).collect();
        let cnps = [&[first, second], &many[..]].concat();
        let samples = every(Duration::from_us(5), us(1_200));
        let reference = traced(numbers, &cnps, &samples)?;
        ensure(reference.counts[0] > 5, || "the trace has no recovery in it".to_owned())?;
    }
    Ok(format!(
        "8 Gb/s, 4 at the first, 6 after one stage; after the second, in bit/s: {}; and a trace of 62 CNPs",
        found.join(", ")
    ))
}

/// ROCE-10: CNPs k intervals after the first.
pub fn alpha_decay() -> Finding {
    let intervals = [0, 1, 2, 3, 10, 50, 200, 1_000];
    for k in intervals {
        let mut bench = sending(&params(&NUMBERS))?;
        bench.run_until(us(20));
        bench.inject(1, cnp(2, 1));
        // As the last interval ends, or just before the next one does.
        let late = if k % 2 == 0 { 54 } else { 0 };
        bench.run_until(us(20 + 55 * k + late));
        let before = rate(&mut bench)? as f64;
        bench.inject(1, cnp(2, 1));
        let found = rate(&mut bench)?;
        let alpha = (255.0f64 / 256.0).powi(k as i32);
        let expected = before * (1.0 - alpha / 2.0);
        ensure((found as f64 - expected).abs() <= 1.0, || {
            format!(
                "a CNP {k} intervals later leaves {found} bit/s of {before}, expected {expected:.1}"
            )
        })?;
    }
    Ok(format!(
        "after k = {intervals:?} intervals a CNP takes (255/256)^k / 2 off the rate, to 1 bit/s"
    ))
}

/// ROCE-11: by the timer alone, by octets alone, and by both into hyper increase.
pub fn recovery() -> Finding {
    let cnps = [us(20), us(21), us(22), us(3_000)];
    let samples = |end| every(Duration::from_ns(27_500), us(end));
    let by_time = traced(NUMBERS, &cnps, &samples(8_000))?;
    let octets = Numbers { octets: 150_000, time: Duration::from_us(100_000), ..NUMBERS };
    let by_octets = traced(octets, &cnps, &samples(12_000))?;
    let both = Numbers { octets: 50_000, ..NUMBERS };
    // A sixth of the line for a target, so that there is room to grow.
    let many: Vec<_> = (0..4).map(|n| us(20 + n)).collect();
    let by_both = traced(both, &many, &samples(6_000))?;
    let [.., hyper] = by_both.counts;
    ensure(by_time.counts[..2].iter().all(|count| *count >= 5), || {
        format!("stages by time were {:?}", by_time.counts)
    })?;
    ensure(by_octets.counts[1] > 0 && hyper > 0, || {
        format!("stages were {:?} by octets, {:?} by both", by_octets.counts, by_both.counts)
    })?;
    fast_recovery_halves_the_gap()?;
    Ok(format!(
        "fast, additive and hyper stages {:?} by the timer (B = 10 MB), {:?} by 150 KB, {:?} by both \
         (50 KB): the rate is the reference's to 2 bit/s every 27.5 µs, also through a CNP on the way",
        by_time.counts, by_octets.counts, by_both.counts
    ))
}

/// Said of the gap itself: five halvings after one cut, and then nothing is left of it to see.
fn fast_recovery_halves_the_gap() -> Result<(), Failure> {
    let mut bench = sending(&params(&NUMBERS))?;
    bench.run_until(us(20));
    bench.inject(1, cnp(2, 1));
    for stage in 0..=5u64 {
        bench.run_until(us(20 + 55 * stage));
        let gap = 8_000_000_000 - rate(&mut bench)?;
        let expected = 4_000_000_000 >> stage;
        ensure(gap == expected, || {
            format!("the gap after {stage} stages is {gap} bit/s, expected {expected}")
        })?;
    }
    Ok(())
}

/// ROCE-12: one CNP for a fresh flow, by profile.
pub fn first_cnp() -> Finding {
    let period = Duration::from_us(4);
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
        bench.run_until(us(20));
        bench.inject(1, cnp(2, 1));
        let first = rate(&mut bench)?;
        bench.run_until(us(20) + period);
        let second = rate(&mut bench)?;
        for (when, rate, expected) in [("at once", first, at_once), ("after 4 µs", second, later)]
        {
            ensure((rate as f64 - expected).abs() <= 1.0, || {
                format!("{params}: {when} the rate is {rate} bit/s, expected {expected:.1}")
            })?;
        }
        found.push(format!("{}: {first}, {second}", params.replace('\n', ", ")));
    }
    Ok(format!("bit/s at once and 4 µs after the first CNP: {}", found.join("; ")))
}
