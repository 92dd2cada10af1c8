//! ROCE-13: a sender at its least rate never takes more than that, in whatever window.

use super::bench_of_nic;
use crate::bench::devices::ethernet::nic;
use crate::bench::devices::{MTU, RATE, burst, class};
use crate::bench::line::{OnLine, line};
use crate::bench::packets::ethernet::cnp;
use crate::case::{Failure, Finding, ensure};
use nicd::config::Transport;
use proto::units::{Bytes, Duration, Instant};

/// Frames that are looked at.
const FRAMES: usize = 200;

/// ROCE-13: 1, 10 and 50 hundredths of the line, with full and short frames in turn.
pub fn rate_limiter() -> Finding {
    let mut told = Vec::new();
    for share in [1, 10, 50] {
        let bits = RATE.get() * share / 100;
        let mut config = nic(1);
        config.classes = vec![class(Transport::Uc, 0)];
        config.traffic = vec![burst(2, 0, MTU as u64 + 100, 0, Instant::ZERO)];
        let params = format!(
            "rate_min = \"{} Mbps\"\ntime_reset = \"100000000 us\"\nbyte_reset = \"0 B\"",
            bits / 1_000_000
        );
        let mut bench = bench_of_nic(config, &params)?;
        bench.run_until(Instant::ZERO + Duration::from_us(20));
        (0..10).for_each(|_| bench.inject(1, cnp(2, 1)));
        let begin = bench.now() + Duration::from_us(10);
        let frame = Bytes::new(FRAMES as u64 * (MTU as u64 + 200));
        bench.run_for(frame.time_at(RATE) * (100 / share));
        let sent = line(bench.line(1), RATE);
        let slow: Vec<_> =
            sent.into_iter().filter(|sent| sent.start >= begin).take(FRAMES).collect();
        let mean = conforms(&slow, bits)?;
        told.push(format!("{mean} bit/s for {share} %"));
    }
    Ok(format!(
        "{FRAMES} frames of 2110 and 162 octets each: no window holds more than its share and a full \
         frame; mean {}",
        told.join(", ")
    ))
}

/// Holds if no window has more than `bits` a second and a full frame; the mean.
fn conforms(sent: &[OnLine<'_>], bits: u64) -> Result<u128, Failure> {
    ensure(sent.len() == FRAMES, || format!("{} frames were sent, expected {FRAMES}", sent.len()))?;
    const SECOND: u128 = 1_000_000_000_000;
    let size = |sent: &OnLine<'_>| u128::from(sent.frame.line_size().get()) * 8;
    let burst = sent.iter().map(size).max().unwrap_or(0);
    for (first, from) in sent.iter().enumerate() {
        let mut total = 0;
        for (count, to) in sent[first..].iter().enumerate() {
            total += size(to);
            let window = u128::from(to.end.since(from.start).as_ps());
            let allowed = u128::from(bits) * window / SECOND + burst;
            ensure(total <= allowed, || {
                format!(
                    "{} frames from frame {first} on are {total} bits in {window} ps, {allowed} are allowed",
                    count + 1
                )
            })?;
        }
    }
    let [first, .., last] = sent else { return Ok(0) };
    // From the first bit of one to the first bit of another.
    let all: u128 = sent.iter().map(size).sum::<u128>() - size(last);
    let mean = all * SECOND / u128::from(last.start.since(first.start).as_ps());
    ensure(mean.abs_diff(bits.into()) * 10_000 <= u128::from(bits), || {
        format!("the mean is {mean} bit/s, expected {bits}")
    })?;
    Ok(mean)
}
