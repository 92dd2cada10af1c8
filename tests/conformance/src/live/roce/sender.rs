//! ROCE-12 and ROCE-13 live: what CNPs do to what a NIC sends, read off its line.

use super::dcqcn;
use crate::bench::packets::ethernet::cnp;
use crate::case::{Failure, Finding, ensure};
use crate::live::cached::Cached;
use crate::live::ethernet::{FRAME, FRAME_TIME, LOSSLESS, RATE, roomy, star, start};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::units::{Duration, Instant};

/// Nothing but CNPs changes the rate: neither timer nor counter nor the fall of α.
const STILL: &str = "time_reset = \"100 s\"\nbyte_reset = \"0 B\"\nalpha_interval = \"100 s\"";
/// With profile cx: a quarter at once, and a cut when a period of 200 ms is over.
const DECLARED: &str =
    "profile = \"cx\"\nfirst_cnp_rate = 0.25\ncut_period = \"200 ms\"\ncut_max = 0.5";

static PAPER: Cached<Record> =
    Cached::new(|| told("profile = \"paper\"", "700 ms", 1), |record| record.fidelity.ok);
static CX: Cached<Record> =
    Cached::new(|| told(DECLARED, "900 ms", 1), |record| record.fidelity.ok);
/// Hundredths of the line, and how long they are looked at. Source: the case; 10 s there.
static LIMITS: [(u64, Cached<Record>); 3] = [
    (1, Cached::new(|| told("rate_min = \"0.1 Mbps\"", "6500 ms", 10), |r| r.fidelity.ok)),
    (10, Cached::new(|| told("rate_min = \"1 Mbps\"", "3500 ms", 10), |r| r.fidelity.ok)),
    (50, Cached::new(|| told("rate_min = \"5 Mbps\"", "2500 ms", 10), |r| r.fidelity.ok)),
];

/// When CNPs come.
const TOLD: Instant = ms(300);

/// A NIC with a backlog hears `count` CNPs.
fn told(params: &str, duration: &str, count: u32) -> Result<Record, Failure> {
    let rest = format!(
        "{}{}[[traffic]]\nname = \"flow\"\nfrom = \"h1\"\nto = \"h2\"\narrivals = \"backlog\"\n\
         size = \"2048 B\"\ntransport = \"uc\"\nstart = \"100 ms\"\n",
        roomy(""),
        dcqcn(&format!("{STILL}\n{params}"))
    );
    let stage = Stage::new(&star(2, duration, "", &rest), "h1")?;
    let mut script = Script::default();
    script.at(TOLD, move |tester| {
        (0..count).for_each(|_| tester.send_frame(1, &cnp(2, 1)));
    });
    stage.run(script)
}

/// From the start of one frame to the start of the next, of those that start in `[from, to)`.
fn gaps(record: &Record, from: Instant, to: Instant) -> Vec<Duration> {
    let starts: Vec<Instant> = record.data(1, LOSSLESS).map(start).collect();
    let here: Vec<Instant> = starts.into_iter().filter(|at| *at >= from && *at < to).collect();
    here.windows(2).map(|pair| pair[1].since(pair[0])).collect()
}

/// The mean gap, in hundredths of what a frame takes.
fn mean(record: &Record, from: Instant, to: Instant) -> Result<u64, Failure> {
    let gaps = gaps(record, from, to);
    ensure(gaps.len() > 3, || format!("only {} frames between {from} and {to}", gaps.len()))?;
    let sum: u64 = gaps.iter().map(|gap| gap.as_ps()).sum();
    Ok(sum * 100 / gaps.len() as u64 / FRAME_TIME.as_ps())
}

/// ROCE-12.
pub fn first_cnp() -> Finding {
    let mut told = Vec::new();
    let soon = TOLD + us(10_000);
    let periods: [(&str, &Cached<Record>, Instant, Instant, u64); 5] = [
        ("paper before", &PAPER, ms(120), TOLD, 100),
        ("paper after", &PAPER, soon, ms(690), 200),
        ("cx before", &CX, ms(120), TOLD, 100),
        ("cx at once", &CX, soon, TOLD + us(190_000), 400),
        ("cx after a period", &CX, TOLD + us(230_000), ms(890), 800),
    ];
    for (what, cached, from, to, expected) in periods {
        let record = cached.get()?;
        let found = mean(record.trusted()?, from, to)?;
        ensure(found.abs_diff(expected) * 100 <= expected * 2, || {
            format!("{what} a frame goes every {found} hundredths of its time, expected {expected}")
        })?;
        told.push(format!("{what} {found}"));
    }
    Ok(format!("hundredths of a frame's time from frame to frame: {}", told.join(", ")))
}

/// ROCE-13.
pub fn rate_limiter() -> Finding {
    let mut told = Vec::new();
    for (share, cached) in &LIMITS {
        let record = cached.get()?;
        let record = record.trusted()?;
        // A frame may be late by the one that was under way.
        let from = TOLD + FRAME_TIME * (100 / share * 2);
        let gaps = gaps(record, from, Instant::NEVER);
        ensure(gaps.len() >= 20, || format!("only {} frames at {share} %", gaps.len()))?;
        let sum: u64 = gaps.iter().map(|gap| gap.as_ps()).sum();
        let octets = FRAME * gaps.len() as u64;
        let limit = RATE.get() * share / 100;
        let mean = u128::from(octets) * 8 * 1_000_000_000_000 / u128::from(sum);
        ensure(mean.abs_diff(limit.into()) * 100 <= u128::from(limit) * 2, || {
            format!("the mean is {mean} bit/s, expected {limit}")
        })?;
        let shortest = gaps.iter().copied().min().unwrap_or_default();
        // Two full frames at once would be a gap of one frame's time; any window then has one more.
        let due = Duration::from_ps(FRAME_TIME.as_ps() * 100 / share);
        let ahead = gaps.iter().scan(0i128, |ahead, gap| {
            *ahead = (*ahead + i128::from(due.as_ps()) - i128::from(gap.as_ps())).max(0);
            Some(*ahead)
        });
        let ahead = ahead.max().unwrap_or(0);
        ensure(ahead <= i128::from(due.as_ps()), || {
            format!("at {share} % a window holds more than two full frames above its share")
        })?;
        told.push(format!(
            "{share} %: {mean} bit/s, least gap {} us",
            shortest.as_ps() / 1_000_000
        ));
    }
    Ok(told.join("; "))
}
