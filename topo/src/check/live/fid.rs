//! FID live: what the emulation does to frames, and what it admits.
//!
//! Orderly incasts that other groups run too serve FID-01, FID-04 and half of FID-13 ([`fabrics`]).

use super::cached::Cached;
use super::fabrics;
use super::frames::Packet;
use super::record::Record;
use super::stage::{self, Stage};
use super::tester::{Label, Script, Seen};
use super::{Star, dilation, ms, star, us};
use crate::check::case::{Failure, Finding, ensure, same};
use crate::launch::Job;
use crate::launch::placement::Hosting;
use crate::launch::programs;
use crate::launch::udp::beside::{self, Opening, Setting};
use crate::render::render;
use crate::scenario::Scenario;
use crate::scenario::run::Placement;
use emulation::cable::inbox::LineCounts;
use emulation::capture::reader::CaptureReader;
use emulation::capture::{CapturePlan, CapturedPort, Technology, WhenFull};
use emulation::driver::evidence;
use emulation::fidelity::{Fidelity, judge};
use emulation::wiring::{End, NodeKind};
use proto::frame::FrameKind;
use proto::ids::PortNumber;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::infiniband::Packet as Parsed;
use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use super::clock_step::clock_step;
pub use super::fabrics::{conservation, order};

fn holds(record: &Record) -> bool {
    record.fidelity.ok
}

/// Sizes of payload, each sent for so long: packets of 90 to 4122 octets.
const PAYLOADS: [u32; 4] = [64, 512, 2048, 4096];
const PAYLOAD_MS: u64 = 1_000;

static RATES: [Cached<Record>; 3] = [
    Cached::new(|| at_rate("1 Mbps"), holds),
    Cached::new(|| at_rate("10 Mbps"), holds),
    Cached::new(|| at_rate("100 Mbps"), holds),
];

/// When the packets of one size are sent.
fn period(index: usize) -> (Instant, Instant) {
    let begin = 200 + index as u64 * PAYLOAD_MS;
    (ms(begin), ms(begin + PAYLOAD_MS))
}

fn at_rate(rate: &str) -> Result<Record, Failure> {
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
    let text = Star { duration: "4300 ms", rate, rest: &rest, ..Star::PROFILE }.text();
    Stage::new(&text, "h1")?.run(Script::default())
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
pub fn serialisation_rate() -> Finding {
    let mut seen = Vec::new();
    for (cached, megabits) in RATES.iter().zip([1, 10, 100]) {
        let record = cached.get()?;
        if megabits == 100 && !record.fidelity.ok {
            // The profile leaves this rate to hosts that can.
            seen.push("100 Mb/s: this host is late at 0.33 ms a frame".to_owned());
            continue;
        }
        let record = record.trusted()?;
        let shares =
            (0..PAYLOADS.len()).map(|index| share_of_line(record, megabits * 1_000_000, index));
        let shares = shares.collect::<Result<Vec<i64>, _>>()?;
        for (share, payload) in shares.iter().zip(PAYLOADS) {
            ensure((share - 10_000).abs() <= 100, || {
                format!("{megabits} Mb/s, {payload} octets of payload: {share} of 10000")
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

static DELAYED: Cached<Record> = Cached::new(delayed, holds);

/// When probe `number` from the source at `place` leaves.
fn probe_at(place: usize, number: u32) -> Instant {
    ms(200) + us(8_000) * u64::from(number) + us(2_000) * place as u64
}

fn probe(place: usize, number: u32) -> Packet {
    Packet::new(place as u16 + 2, 1, number)
}

fn delayed() -> Result<Record, Failure> {
    let delays: Vec<&str> = ["0 ms"].into_iter().chain(DELAYS.map(|(text, _)| text)).collect();
    let star = Star { nics: 5, duration: "1200 ms", delays: &delays, ..Star::PROFILE };
    let stage = Stage::new(&star.text(), "s0")?;
    let mut script = Script::default();
    for place in 0..DELAYS.len() {
        for number in 0..PROBES {
            script.at(probe_at(place, number), move |tester| {
                tester.send(place as u8 + 2, &probe(place, number).octets());
            });
        }
    }
    stage.run(script)
}

/// FID-03.
pub fn propagation_delay() -> Finding {
    let record = DELAYED.get()?;
    let record = record.trusted()?;
    let line = Duration::from_ns(probe(0, 0).octets().len() as u64 * 800);
    let late = record.report.lateness.wall_ns.p99() * 1_000 / dilation(1);
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
                is_it.then(|| seen.heard.as_ps() as i64 - left.as_ps() as i64)
            })
            .collect();
        same(format!("probes heard over {text}"), ways.len() as u32, PROBES)?;
        ways.sort_unstable();
        let mean = ways.iter().sum::<i64>() / i64::from(PROBES);
        let expected = (us * 1_000_000 + line.as_ps()) as i64;
        ensure(mean.abs_diff(expected) <= allowed, || {
            format!("over {text}: {mean} ps on the way, expected {expected} ± {allowed}")
        })?;
        let p99 = ways[ways.len() * 99 / 100];
        found.push(format!("{text}: {} µs, p99 {} µs", mean / 1_000_000, p99 / 1_000_000));
    }
    let line_us = line.as_ps() / 1_000_000;
    Ok(format!("delay + {line_us} µs of line, by the wall clock: {}", found.join("; ")))
}

/// Groups of four packets, of which the second comes after the third and the fourth comes twice.
const GROUPS: u32 = 60;

static SHUFFLED: Cached<Record> = Cached::new(shuffled, holds);

fn shuffled() -> Result<Record, Failure> {
    let stage = Stage::new(&star(2, "800 ms", "", ""), "s0")?;
    let mut script = Script::default();
    for group in 0..GROUPS {
        let begin = ms(150) + us(8_000) * u64::from(group);
        script.at(begin, move |tester| {
            let octets = [0, 1, 2, 3].map(|n| Packet::new(1, 2, group * 4 + n).octets());
            let stamped = |n: u64, sequence| Label {
                sequence,
                stamp: Some(begin + us(1_000) * n),
                ..tester.label()
            };
            let labels = [0, 1, 2, 3].map(|n| stamped(n, None));
            tester.send_labelled(1, &octets[0], labels[0]);
            let held = tester.hold_back(1, FrameKind::Infiniband, &octets[1]);
            tester.send_labelled(1, &octets[2], labels[2]);
            tester.send_labelled(1, &octets[1], Label { sequence: Some(held), ..labels[1] });
            let last = tester.sequence(1);
            tester.send_labelled(1, &octets[3], labels[3]);
            let again = Label { sequence: Some(last), ..labels[3] };
            tester.put(1, FrameKind::Infiniband, &octets[3], again);
        });
    }
    stage.run(script)
}

/// FID-06.
pub fn reorder_and_duplicate() -> Finding {
    let record = SHUFFLED.get()?;
    let record = record.trusted()?;
    let LineCounts { reordered, duplicates, lost, .. } = record.line(1);
    same("reordered frames counted", reordered, u64::from(GROUPS))?;
    same("duplicates counted", duplicates, u64::from(GROUPS))?;
    same("frames declared lost", lost, 0)?;
    let numbers = record
        .packets(2)
        .filter_map(|seen| Parsed::parse(&seen.frame.octets).ok()?.bth.map(|bth| bth.psn.get()));
    let numbers: Vec<u32> = numbers.collect();
    let expected: Vec<u32> = (0..GROUPS * 4).collect();
    ensure(numbers == expected, || {
        format!("{} frames were delivered, or not in order: {numbers:?}", numbers.len())
    })?;
    Ok(format!(
        "{GROUPS} swapped and {GROUPS} doubled datagrams counted; {} frames once and in order",
        expected.len()
    ))
}

/// The daemon stands still for so long while datagrams come.
const STILL: (Instant, Instant) = (ms(300), ms(500));
const FLOOD: u32 = 400;

/// FID-07.
pub fn socket_overflow() -> Finding {
    let mut stage = Stage::new(&star(2, "900 ms", "", ""), "s0")?;
    // Less than the kernel's minimum: it gives that.
    stage.receive_buffer = Some(1);
    let mut script = Script::default();
    for number in 0..FLOOD {
        script.at(STILL.0 + us(400) * u64::from(number), move |tester| {
            tester.send(1, &Packet::new(1, 2, number).octets());
        });
    }
    for number in 0..20 {
        script.at(ms(700) + us(2_000) * u64::from(number), move |tester| {
            tester.send(1, &Packet::new(1, 2, FLOOD + number).octets());
        });
    }
    let record = stage.run_with(script, |opening| {
        let opening = opening.clone();
        std::thread::spawn(move || {
            opening.wait_until(STILL.0);
            let held = opening.hold(0);
            opening.wait_until(STILL.1);
            drop(held);
        });
    })?;
    let exchange = &record.report.exchange;
    let gaps: u64 = exchange.received.iter().map(|line| line.counts.lost).sum();
    let sent: u64 = record.exchange.sent.iter().map(|line| line.sent.total()).sum();
    let came: u64 = exchange
        .received
        .iter()
        .map(|line| line.counts.received.plus(line.counts.drained).total() + line.counts.stale)
        .sum();
    ensure(exchange.overflows > 0, || {
        format!("no overflow with a buffer of {} octets", exchange.buffers.receive)
    })?;
    same("datagrams the socket dropped (SO_RXQ_OVFL)", exchange.overflows, sent - came)?;
    same("gaps in the sequence numbers", gaps, exchange.overflows)?;
    same("losses that the verdict knows", record.fidelity.transport_lost, exchange.overflows)?;
    same("the run passes for faithful", record.fidelity.ok, false)?;
    Ok(format!(
        "200 ms without a reader, {} octets of buffer: {gaps} datagrams dropped, as many gaps, and \
         the run is inconclusive",
        exchange.buffers.receive
    ))
}

/// FID-08.
pub fn starvation() -> Finding {
    let rest = "[[traffic]]\nname = \"incast\"\nfrom = \"h[1-3]\"\nto = \"h4\"\n\
                arrivals = \"backlog\"\nsize = \"2048 B\"\ntransport = \"rc\"\n";
    let text = star(4, "3 s", "", rest);
    let (fidelity, departures) = starved(&text)?;
    ensure(!fidelity.ok, || {
        let p99 = fidelity.lateness_p99_frames;
        format!("a tenth of a core, lateness p99 {p99} frames, and the run passes for faithful")
    })?;
    Ok(format!(
        "switchd had 10 ms of each 100 ms (stopped and continued): {departures} departures, p99 {:.2} \
         frames late, inconclusive",
        fidelity.lateness_p99_frames
    ))
}

/// A run whose switches stand still for nine tenths of the time; the verdict, and frame-hops.
fn starved(text: &str) -> Result<(Fidelity, u64), Failure> {
    let scenario = Scenario::parse(text, &[]);
    let scenario = scenario.map_err(|faults| faults.in_file("a live case"))?;
    let lab = render(&scenario);
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|error| Failure::Inconclusive(error.to_string()))?;
    let run = &scenario.run;
    let job = Job {
        lab: &lab,
        name: &scenario.name,
        seed: run.seed,
        dilation: dilation(1),
        placement: run.placement,
        cables: run.cables,
        carrier: run.carrier,
        realtime: run.realtime,
        capture: None,
        injections: Vec::new(),
        scratch: scratch.path(),
    };
    let hosting = Hosting::new(&lab.fabric.wiring, Placement::Worker, 2);
    let switches = hosting.kinds.iter().position(|kind| *kind == NodeKind::Switch);
    let switches = switches.ok_or_else(|| "no process hosts switches".to_owned())?;
    let setting = Setting { hosting, address: None, receive_buffer: None, environment: Vec::new() };
    let player = move |opening: &Opening| {
        while !opening.is_over() {
            let held = opening.hold(switches);
            opening.wait_until(opening.clock.now() + opening.clock.fabric(90_000_000));
            drop(held);
            opening.wait_until(opening.clock.now() + opening.clock.fabric(10_000_000));
        }
    };
    let played = beside::run(&job, setting, player).map_err(stage::died)?;
    let evidence = evidence(&played.reports, played.missed);
    let departures = played.reports.iter().map(|report| report.departures).sum();
    Ok((judge(&evidence, NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN)), departures))
}

/// FID-10.
pub fn restart() -> Finding {
    const OURS: u32 = 10;
    const THEIRS: u32 = 25;
    let run = |number: u32, other: Option<u32>| {
        let stage = Stage::new(&star(2, "400 ms", "", ""), "s0")?;
        let epoch = Arc::new(AtomicU32::new(0));
        let mut script = Script::default();
        script.at(ms(150), move |tester| {
            (0..number).for_each(|psn| tester.send(1, &Packet::new(1, 2, psn).octets()));
            let Some(epoch) = other else { return };
            let label = Label { epoch, ..tester.label() };
            for psn in 0..THEIRS {
                let octets = Packet::new(1, 2, 1_000 + psn).octets();
                tester.put(1, FrameKind::Infiniband, &octets, label);
            }
        });
        let told = Arc::clone(&epoch);
        let record = stage.run_with(script, move |opening| {
            told.store(opening.epoch, Ordering::Relaxed);
        })?;
        record.trusted()?;
        Ok::<_, Failure>((record, epoch.load(Ordering::Relaxed)))
    };
    let (first, before) = run(OURS, None)?;
    let (second, after) = run(OURS, Some(before))?;
    ensure(before != after, || format!("both runs have the epoch {before}"))?;
    for (record, refused) in [(&first, 0), (&second, u64::from(THEIRS))] {
        let counted = record.port(1).lanes.iter().map(|lane| lane.counters.rx_frames).sum::<u64>();
        same("frames counted since the start", counted, u64::from(OURS))?;
        same("frames of another epoch", record.report.exchange.rejected.epoch, refused)?;
        same("packets that left", record.packets(2).count() as u32, OURS)?;
    }
    Ok(format!(
        "started anew: another epoch, counters from 0, {THEIRS} frames of the old epoch counted and \
         refused"
    ))
}

/// FID-13.
pub fn capture() -> Finding {
    let seen = fabrics::capture_of_everything()?;
    let killed = killed_while_capturing()?;
    Ok(format!("{seen}; {killed}"))
}

/// A daemon is killed while it captures a busy port; what is left of the file can be read.
fn killed_while_capturing() -> Finding {
    let rest = "[[traffic]]\nname = \"busy\"\nfrom = \"h1\"\nto = \"h2\"\narrivals = \"backlog\"\n\
                transport = \"uc\"\nsize = \"2048 B\"\n";
    let mut stage = Stage::new(&star(2, "3 s", "", rest), "h1")?;
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failure::Inconclusive(error.to_string()))?;
    let file = folder.path().join("capture.pcapng");
    let at = End { node: 0, port: PortNumber::from_index(0) };
    let rate = BitRate::new(10_000_000).ok_or_else(|| "no rate".to_owned())?;
    stage.capture = Some(CapturePlan {
        file: file.clone(),
        scenario: "killed".to_owned(),
        seed: 0,
        dilation: Some(stage.dilation),
        snaplen: None,
        when_full: WhenFull::Drop,
        ports: vec![CapturedPort { at, technology: Technology::Infiniband, rate, fed: false }],
    });
    let run = stage.run_with(Script::default(), |opening| {
        let opening = opening.clone();
        std::thread::spawn(move || {
            opening.wait_until(ms(1_200));
            opening.kill(0);
        });
    });
    let Err(Failure::Failed(died)) = run else {
        return Err(Failure::Failed("the daemon was killed, and the run came back".to_owned()));
    };
    ensure(died.contains("SIGKILL"), || died)?;
    let whole = readable(&file)?;
    ensure(whole > 300, || format!("only {whole} frames can be read after the kill"))?;
    let arguments = ["-n".as_ref(), "-r".as_ref(), file.as_os_str()];
    let opened = match programs::run("tshark", &arguments) {
        Err(_) => "tshark is not here".to_owned(),
        Ok((_, text)) => {
            let lines = text.lines().filter(|line| line.contains("InfiniBand")).count();
            ensure(lines >= whole, || format!("tshark shows {lines} of {whole} frames"))?;
            "tshark opens it".to_owned()
        }
    };
    Ok(format!("killed after 1.2 s: {whole} frames whole, {opened}"))
}

/// How many frames of a capture can be read before it ends, wherever that is.
fn readable(file: &Path) -> Result<usize, Failure> {
    let say = |error: &dyn std::fmt::Display| Failure::Failed(format!("the capture: {error}"));
    let input = File::open(file).map_err(|error| say(&error))?;
    let reader = CaptureReader::new(BufReader::new(input)).map_err(|error| say(&error))?;
    Ok(reader.map_while(Result::ok).count())
}
