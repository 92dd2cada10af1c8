//! FID: link emulation, accounting, fidelity: what the emulation does to frames, and what it admits.
//!
//! On the virtual clock whole fabrics run from a scenario: [`accounts`], [`order`]. Live an orderly incast
//! ([`incast`]) serves several cases.

mod accounts;
mod capture;
mod clock_step;
mod datagram_loss;
mod datagrams;
mod incast;
mod noise;
mod offloads;
mod order;
mod starvation;

pub use incast::incast_without_loss;

use crate::case::cases;
use crate::prelude::*;
use proto::wire::infiniband::Packet as Parsed;
use testbed::frames::infiniband::Packet;

cases! { "FID", "Link emulation, accounting, fidelity";
    "FID-01" both(accounts::every_frame_is_sent_dropped_or_kept_at_every_port, incast::conservation), "Conservation at every port",
        "own rule; torvalds/linux qos_pfc.sh dout == din; SONiC WRRtest q_cnt_sum == total",
        "The equation cannot hold for one port, since frames come in by one and leave by another: it is held for each switch and lane over its ports, for each link and way, and each port's counters are held against what was seen on its wire. Link packets never quiesce; they are in the ports' accounts and not in the links'.";
    "FID-02" live(serialisation_rate), "Serialisation rate",
        "sch_ets / qos_pfc tolerance is 5 %",
        "Each of four sizes for a quarter of the ten seconds of its rate. 100 Mb/s counts only where the run is faithful: the profile leaves that rate to hosts that can.";
    "FID-03" live(propagation_delay), "Propagation delay",
        "Mininet fidelity literature (delay monitoring)";
    "FID-04" both(order::a_million_frames_of_a_flow_arrive_once_and_in_order, incast::order), "Order",
        "test_ipip_packet_reorder in sonic-mgmt snappi qos",
        "A million frames of each flow on the virtual clock. Live, as many as a line of the profile carries in 30 s: a million would last 28 minutes.";
    "FID-05" live(datagram_loss::datagram_loss), "Injected datagram loss is reported",
        "link sequence numbers; lance0/xfr#75, envoyproxy/envoy#7165",
        "By a program of the packet filter on the daemon's socket, at random, for one link.";
    "FID-06" live(datagrams::reorder_and_duplicate), "Injected reorder and duplicate",
        "own rule";
    "FID-07" live(datagrams::socket_overflow), "Socket overflow",
        "envoy#7165 (u32 wrap), holepunchto/libudx#214";
    "FID-08" live(starvation::starvation), "CPU starvation is infidelity",
        "ns-3 RealtimeSimulatorImpl HardLimit; Handigol et al. 2012 fidelity monitoring",
        "The quota is made by stopping switchd for 90 ms of each 100 ms, which needs no rights. One run stands for all: the run's verdict and its lateness are judged.";
    "FID-09" live(clock_step::clock_step), "Clock step",
        "varnishcache/varnish-cache#1874, airbus/sen#198",
        "The clock of the daemon alone is stepped, by a library preloaded into it; stepping the host's would harm others, and time namespaces cannot hold CLOCK_REALTIME. Captures carry fabric time.";
    "FID-10" live(datagrams::restart), "Counters survive nothing silently",
        "Prometheus counter-reset rule",
        "A restarted daemon is a new run here. A run's daemons serve no metrics, so there is no start_time; epoch, counters and the peer's count of refused frames are judged.";
    "FID-11" live(noise::no_foreign_noise), "No foreign noise",
        "sonic-mgmt#22871, #8269",
        "Takes the rights of the backend netns. The kernel's IPv6 is silenced before interfaces are made.";
    "FID-12" live(offloads::offloads), "Offloads",
        "p4lang/behavioral-model#919, #986, #1280; smoltcp-rs/smoltcp#497",
        "Takes the rights of the backend netns. Nothing is turned off: the port finishes what a sender left to hardware. A frame above the port's MTU is dropped and counted.";
    "FID-13" live(capture::capture), "Capture is faithful",
        "gojue/ecapture#385";
}

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

fn at_rate(on: Level, rate: &str) -> Result<Record, Failure> {
    let items = PAYLOADS.iter().enumerate().map(|(index, payload)| {
        let begin = 200 + index as u64 * PAYLOAD_MS;
        let end = begin + PAYLOAD_MS;
        format!(
            "[[traffic]]\nname = \"of {payload}\"\nfrom = \"h1\"\nto = \"h2\"\n\
             arrivals = \"backlog\"\ntransport = \"uc\"\nsize = \"{payload} B\"\n\
             start = \"{begin} ms\"\nstop = \"{end} ms\"\n"
        )
    });
    let rest = format!("mtu = \"4096 B\"\n{}", items.collect::<String>());
    let text = Star { duration: "10300 ms", rate, rest: &rest, ..Star::PROFILE }.text();
    Stage::new(on, &text, "h1")?.run(Script::default())
}

/// Octets on the line over what its rate allows, by when they were really heard. Units: 1/10000.
fn share_of_line(record: &Record, rate: u64, index: usize) -> Result<i64, Failure> {
    let (from, to) = period(index);
    // The line is not yet, or no longer, busy at the very edges.
    let (from, to) = (from + us(60_000), Instant::from_ps(to.as_ps() - us(60_000).as_ps()));
    let heard: Vec<&Seen> =
        record.seen.iter().filter(|seen| seen.at >= from && seen.at < to).collect();
    let (Some(first), Some(last)) = (heard.first(), heard.last()) else {
        return Err(Failure::Failed("nothing was heard".to_owned()));
    };
    let octets: u64 = heard[1..].iter().map(|seen| seen.frame.line_size().get()).sum();
    let due = octets as u128 * 8 * 1_000_000_000_000 / u128::from(rate);
    let took = u128::from(last.heard.since(first.heard).as_ps().max(1));
    Ok((due * 10_000 / took) as i64)
}

/// FID-02.
pub fn serialisation_rate(on: Level) -> Finding {
    let mut seen = Vec::new();
    for (cached, megabits) in RATES.iter().zip([1, 10, 100]) {
        if megabits == 100 && cached.made(on)?.trusted().is_err() {
            // The profile leaves this rate to hosts that can.
            seen.push("100 Mb/s: this host is late at 0.33 ms a frame".to_owned());
            continue;
        }
        let record = cached.on(on)?;
        let shares =
            (0..PAYLOADS.len()).map(|index| share_of_line(&record, megabits * 1_000_000, index));
        let shares = shares.collect::<Result<Vec<i64>, _>>()?;
        for (share, payload) in shares.iter().zip(PAYLOADS) {
            ensure((share - 10_000).abs() <= 100, || {
                format!("{megabits} Mb/s, {payload} octets: {share} of 10000")
            })?;
        }
        let worst = shares.iter().map(|share| (share - 10_000).abs()).max().unwrap_or(0);
        seen.push(format!("{megabits} Mb/s: within {}.{:02} %", worst / 100, worst % 100));
    }
    Ok(format!("packets of 90 to 4122 octets by the wall clock: {}", seen.join("; ")))
}

/// Delays of the cables of h2 to h5; h1 hears what they send.
const DELAYS: [(&str, u64); 4] =
    [("0 ms", 0), ("1 ms", 1_000), ("10 ms", 10_000), ("100 ms", 100_000)];
const PROBES: u32 = 100;

static DELAYED: Shared<Record> = Shared::new(delayed);

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

fn delayed(on: Level) -> Result<Record, Failure> {
    let delays: Vec<&str> = ["0.125 mtu"].into_iter().chain(DELAYS.map(|(text, _)| text)).collect();
    let star = Star { nics: 5, duration: "1400 ms", delays: &delays, ..Star::PROFILE };
    let stage = Stage::new(on, &star.text(), "s0")?;
    let mut script = Script::default();
    for place in 0..DELAYS.len() {
        for number in 0..PROBES {
            script.at(probe_at(place, number), move |bed| {
                bed.send(place as u8 + 2, &probe(place, number).octets());
            });
        }
    }
    stage.run(script)
}

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
                // What is heard before its stamp is not handled before it.
                let handled = seen.heard.max(seen.at);
                is_it.then(|| handled.as_ps() as i64 - left.as_ps() as i64)
            })
            .collect();
        same(format!("probes heard over {text}"), ways.len() as u32, PROBES)?;
        ways.sort_unstable();
        let mean = ways.iter().sum::<i64>() / i64::from(PROBES);
        let expected = (us * 1_000_000 + line.as_ps()) as i64;
        ensure(mean.abs_diff(expected) <= allowed, || {
            format!("over {text}: {mean} ps, expected {expected} ± {allowed}")
        })?;
        let p99 = ways[ways.len() * 99 / 100];
        found.push(format!("{text}: {} µs, p99 {} µs", mean / 1_000_000, p99 / 1_000_000));
    }
    let line_us = line.as_ps() / 1_000_000;
    Ok(format!("delay + {line_us} µs of line, by the wall clock: {}", found.join("; ")))
}
