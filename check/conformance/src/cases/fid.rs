//! FID: link emulation, accounting, fidelity: what the emulation does to frames, and what it admits.
//!
//! On the virtual clock whole fabrics run from a scenario: [`accounts`], [`order`]. Live an orderly incast
//! ([`incast`]) serves several cases.

mod accounts;
mod capture;
mod clock_step;
mod datagram_loss;
mod datagrams;
mod held;
mod incast;
mod noise;
mod offloads;
mod order;
mod starvation;

pub use incast::incast_without_loss;

use crate::prelude::*;
use proto::wire::infiniband::Packet as Parsed;
use testbed::frames::infiniband::Packet;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("FID-01", incast::conservation),
    ("FID-02", serialisation_rate),
    ("FID-03", propagation_delay),
    ("FID-04", incast::order),
    ("FID-05", datagram_loss::datagram_loss),
    ("FID-06", datagrams::reorder_and_duplicate),
    ("FID-07", datagrams::socket_overflow),
    ("FID-08", starvation::starvation),
    ("FID-09", clock_step::clock_step),
    ("FID-10", datagrams::restart),
    ("FID-11", noise::no_foreign_noise),
    ("FID-12", offloads::offloads),
    ("FID-13", capture::capture),
    ("FID-14", held::own_messages),
    ("FID-15", held::withdrawn),
    ("FID-16", held::lost_answers),
];

/// Sizes of payload, each sent for so long: packets of 90 to 4122 octets.
const PAYLOADS: [u32; 4] = [64, 512, 2048, 4096];
const PAYLOAD_MS: u64 = 2_500;

static RATES: [Shared<Record>; 3] = [
    Shared::new(|on| at_rate(on, "1 Mbps")),
    Shared::new(|on| at_rate(on, "10 Mbps")),
    Shared::new(|on| at_rate(on, "100 Mbps")),
];

/// When the packets of one size are sent.
fn period(index: usize) -> (Instant, Instant) {
    let begin = 200 + index as u64 * PAYLOAD_MS;
    (ms(begin), ms(begin + PAYLOAD_MS))
}

fn at_rate(on: Level, rate: &str) -> Result<Record> {
    let items = PAYLOADS.iter().enumerate().map(|(index, payload)| {
        let begin = 200 + index as u64 * PAYLOAD_MS;
        let keys = format!(
            "arrivals = \"backlog\"\ntransport = \"uc\"\nsize = \"{payload} B\"\n\
             start = \"{begin} ms\"\nstop = \"{} ms\"",
            begin + PAYLOAD_MS
        );
        traffic(&format!("of {payload}"), "h1", "h2", &keys)
    });
    let rest = format!("mtu = \"4096 B\"\n{}", items.collect::<String>());
    let text = Star { duration: "10300 ms", rate, rest: &rest, ..Star::PROFILE }.text();
    Stage::new(on, &text, "h1")?.run(Script::default())
}

/// Octets on the line over what its rate allows, by when they really came. Units: 1/10000.
fn share_of_line(record: &Record, rate: u64, index: usize) -> Result<i64> {
    let (from, to) = period(index);
    // The line is not yet, or no longer, busy at the very edges.
    let (from, to) = (from + us(60_000), Instant::from_ps(to.as_ps() - us(60_000).as_ps()));
    let arrived: Vec<&Seen> =
        record.seen.iter().filter(|seen| seen.at >= from && seen.at < to).collect();
    let (Some(first), Some(last)) = (arrived.first(), arrived.last()) else {
        bail!("no frame came");
    };
    let octets: u64 = arrived[1..].iter().map(|seen| seen.frame.line_size().get()).sum();
    let due = octets as u128 * 8 * 1_000_000_000_000 / u128::from(rate);
    let took = u128::from(last.received.since(first.received).as_ps().max(1));
    Ok((due * 10_000 / took) as i64)
}

/// FID-02.
pub fn serialisation_rate(on: Level) -> Finding {
    let mut seen = Vec::new();
    for (cached, megabits) in RATES.iter().zip([1, 10, 100]) {
        if megabits == 100 && cached.made(on)?.kept_up().is_err() {
            // The profile leaves this rate to hosts that can.
            seen.push("100 Mb/s: this host is late at 0.33 ms a frame".to_owned());
            continue;
        }
        let record = cached.on(on)?;
        let shares =
            (0..PAYLOADS.len()).map(|index| share_of_line(&record, megabits * 1_000_000, index));
        let shares = shares.collect::<Result<Vec<i64>, _>>()?;
        for (share, payload) in shares.iter().zip(PAYLOADS) {
            near(format!("{megabits} Mb/s, {payload} octets"), *share, 10_000, 100)?;
        }
        let worst = shares.iter().map(|share| (share - 10_000).abs()).max().unwrap_or(0);
        seen.push(format!("{megabits} Mb/s: within {}.{:02} %", worst / 100, worst % 100));
    }
    Ok(format!("packets of 90 to 4122 octets by the wall clock: {}", seen.join("; ")))
}

/// Delays of the cables of h2 to h5; h1 receives what they send.
const DELAYS: [(&str, u64); 4] =
    [("0 ms", 0), ("1 ms", 1_000), ("10 ms", 10_000), ("100 ms", 100_000)];
const PROBES: u32 = 100;

/// When the sources' probes leave in each round: apart by more than a frame time at the switch,
/// whatever their cables' delays. Units: microseconds.
const PLACES: [u64; 4] = [0, 1_500, 5_000, 7_500];

/// When probe `number` from the source at `place` leaves.
fn probe_at(place: usize, number: u32) -> Instant {
    ms(200) + us(10_000) * u64::from(number) + us(PLACES[place])
}

fn probe(place: usize, number: u32) -> Packet {
    Packet { payload: 2048, ..Packet::new(place as u16 + 2, 1, number) }
}

static DELAYED: Shared<Record> = Shared::new(|on| {
    let delays: Vec<&str> = ["0.125 mtu"].into_iter().chain(DELAYS.map(|(text, _)| text)).collect();
    let star = Star { nics: 5, duration: "1400 ms", delays: &delays, ..Star::PROFILE };
    play(on, &star.text(), "s0", |script| {
        for place in 0..DELAYS.len() {
            script.every(probe_at(place, 0), us(10_000), PROBES.into(), move |bed, number| {
                bed.send(place as u8 + 2, &probe(place, number as u32).octets());
            });
        }
    })
});

/// FID-03.
pub fn propagation_delay(on: Level) -> Finding {
    let record = DELAYED.on(on)?;
    let line = Duration::from_ns(probe(0, 0).octets().len() as u64 * 800);
    let late = record.late().as_ps() / dilation(1);
    let allowed = us(200).as_ps() / dilation(1) + 2 * late;
    let mut found = Vec::new();
    for (place, (text, us)) in DELAYS.iter().enumerate() {
        let mut ways: Vec<i64> = record
            .packets(1)
            .filter_map(|seen| {
                let packet = Parsed::parse(&seen.frame.octets).ok()?;
                let number = packet.bth?.psn.get();
                let left = probe_at(place, number) + line;
                let is_it = usize::from(packet.lrh.slid.get()) == place + 2;
                // What comes before its stamp is not handled before it.
                let handled = seen.received.max(seen.at);
                is_it.then(|| handled.as_ps() as i64 - left.as_ps() as i64)
            })
            .collect();
        same(format!("probes that came over {text}"), ways.len() as u32, PROBES)?;
        ways.sort_unstable();
        let mean = ways.iter().sum::<i64>() / i64::from(PROBES);
        let expected = (us * 1_000_000 + line.as_ps()) as i64;
        near(format!("ps over {text}"), mean, expected, allowed)?;
        let p99 = ways[ways.len() * 99 / 100];
        found.push(format!("{text}: {} µs, p99 {} µs", mean / 1_000_000, p99 / 1_000_000));
    }
    let line_us = line.as_ps() / 1_000_000;
    Ok(format!("delay + {line_us} µs of line, by the wall clock: {}", found.join("; ")))
}
