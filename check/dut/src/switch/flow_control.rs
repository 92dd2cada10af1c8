//! FC: PAUSE and PFC end at the link, and stop what they name if the device claims it.

use super::{Scripts, Switch};
use crate::rate;
use crate::verdict::{Check, Fault, must};
use bytes::Bytes;
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::{MacAddress, MacControl, Pfc};
use testbed::Seen;
use testbed::frames::ethernet::{
    control, frame, pause, pfc, quanta_for, readdressed, roce, tagged,
};

pub(super) const SCRIPTS: Scripts = &[
    ("FC-01", |switch| ends_here(switch, &[pause(0), pause(1), pause(0xffff)], &[pause(0)])),
    ("FC-02", |switch| ends_here(switch, &[pfc(0xff, 0), pfc(0x08, 9)], &[pfc(0xff, 0)])),
    ("FC-03", |switch| ends_here(switch, &[unknown(0x0202), unknown(0)], &[])),
    ("FC-04", stops),
    ("FC-05", resumes),
    ("FC-06", expires),
    ("FC-07", one_priority),
    ("FC-08", not_enabled),
    ("FC-09", unknown_is_ignored),
    ("FC-10", refreshed),
    ("FC-11", lossless),
    ("FC-12", |switch| rate::two_of_three(|| no_faster(switch))),
    ("FC-13", |switch| rate::two_of_three(|| busy_port_stops(switch))),
];

/// Bit times of a quantum. Source: IEEE 802.3, 31B.2.
const QUANTUM_BITS: u64 = 512;
/// More octets than IP, UDP, BTH and ICRC have together.
const HEADERS: usize = 100;
/// The lossless priority of our own files.
const LOSSLESS: u8 = 3;

fn unknown(opcode: u16) -> Frame {
    control(MacControl::Unknown(opcode))
}

/// Frames of MAC control are not forwarded; `after` lets go what they may have stopped.
fn ends_here(switch: &mut Switch<'_>, frames: &[Frame], after: &[Frame]) -> Check {
    for frame in frames {
        let came = switch.copies(1, frame, 0)?;
        must!(came.is_empty(), "it leaves by {:?}", ports(&came));
    }
    for frame in after {
        switch.line.send(1, &frame.octets)?;
    }
    switch.still_works()?;
    Ok(format!("{} frames of MAC control left by no port", frames.len()))
}

fn ports(came: &[(u8, Bytes)]) -> Vec<u8> {
    came.iter().map(|(port, _)| *port).collect()
}

/// A stream to one port of the device, on one priority by DSCP and PCP.
struct Stream {
    port: u8,
    frame: Frame,
}

/// A station behind `port` that the device knows, and frames to it by priority.
fn streams(switch: &mut Switch<'_>, port: u8, priorities: &[u8]) -> Check<Vec<Stream>> {
    let (from, to) = (switch.station(1), switch.station(2));
    let ingress = if port == 1 { 3 } else { 1 };
    switch.teach(ingress, from)?;
    switch.teach(port, to)?;
    let one = |priority: &u8| {
        let frame = frame(&roce(1, 2, *priority, u32::from(*priority)), 64);
        Stream { port: ingress, frame: tagged(readdressed(frame, to, from), *priority) }
    };
    Ok(priorities.iter().map(one).collect())
}

/// Quanta as wall time.
fn quanta(switch: &Switch<'_>, count: u16) -> Duration {
    let rate = switch.file.tolerance.pause_rate;
    Duration::from_ns(u64::from(count) * QUANTUM_BITS * 1_000 / rate)
}

/// How many copies of one frame of the stream come; `count` of them are waited for.
fn passes(switch: &mut Switch<'_>, stream: &Stream, count: usize) -> Check<usize> {
    switch.copies_by_time(stream.port, &stream.frame, count).map(|came| came.len())
}

/// Sends MAC control by `port`, and gives the device the time to take it: a broadcast behind it by the same port has come out.
fn say(switch: &mut Switch<'_>, port: u8, frame: &Frame) -> Check<()> {
    switch.line.send(port, &frame.octets)?;
    switch.passes(port, switch.file.tolerance.patience)?;
    let until = switch.line.now() + Duration::from_us(1_000);
    switch.line.wait(until, |_| false).map(|_| ())
}

/// That a frame of the stream passes long before a pause that was sent at `began` would end.
fn passes_at_once(switch: &mut Switch<'_>, stream: &Stream, began: Instant) -> Check<()> {
    switch.mark = switch.line.seen.len();
    switch.line.send(stream.port, &stream.frame.octets)?;
    let came = switch.await_copies(&stream.frame, 1)?;
    let took = switch.line.now().since(began);
    switch.mark = switch.line.seen.len();
    must!(came, "no frame passes within {} ms", in_ms(switch.file.tolerance.patience));
    let limit = quanta(switch, u16::MAX / 2);
    must!(took < limit, "a frame passes only {} ms after the pause was sent", in_ms(took));
    Ok(())
}

/// That frames which were held come out once it is permitted.
fn held(switch: &mut Switch<'_>, stream: &Stream) -> Check<()> {
    let came = switch.held_copies(&stream.frame, 1)?;
    must!(came.len() == 1, "{} of 1 frame comes after the pause", came.len());
    Ok(())
}

/// That the longest pause is long enough to be told from a device that takes its time.
fn longest(switch: &Switch<'_>) -> Check<()> {
    let longest = quanta(switch, u16::MAX);
    if longest < switch.quiet() * 2 {
        let text =
            "the longest pause is shorter than twice the quiet time: lower the rate of the port";
        return Err(Fault::unclear(text));
    }
    Ok(())
}

fn stops(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pause_port;
    let streams = streams(switch, port, &[0])?;
    say(switch, port, &pause(u16::MAX))?;
    let came = passes(switch, &streams[0], 0)?;
    say(switch, port, &pause(0))?;
    must!(came == 0, "{came} frames pass a paused port");
    held(switch, &streams[0])?;
    Ok("nothing passes, and what waited comes afterwards".to_owned())
}

fn resumes(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pause_port;
    let streams = streams(switch, port, &[0])?;
    say(switch, port, &pause(u16::MAX))?;
    let began = switch.line.now();
    let came = passes(switch, &streams[0], 0)?;
    say(switch, port, &pause(0))?;
    must!(came == 0, "{came} frames pass a paused port");
    held(switch, &streams[0])?;
    let took = switch.line.now().since(began);
    let limit = quanta(switch, u16::MAX);
    must!(took < limit, "it resumes only after {} ms", in_ms(took));
    Ok(format!("it resumes at once, long before {} ms", in_ms(limit)))
}

fn in_ms(time: Duration) -> u64 {
    time.as_ps() / 1_000_000_000
}

/// When the stream's frame, sent into a pause of `count` quanta, comes out after the pause was sent.
fn release(switch: &mut Switch<'_>, port: u8, stop: &Frame, stream: &Stream) -> Check<Duration> {
    let began = switch.line.now();
    say(switch, port, stop)?;
    switch.line.send(stream.port, &stream.frame.octets)?;
    let (mark, until) = (switch.mark, began + switch.file.tolerance.patience);
    let is_it = |seen: &Seen| seen.frame.octets == stream.frame.octets;
    let came = switch.line.wait(until, |seen| seen[mark..].iter().any(is_it))?;
    must!(came, "nothing comes within {} ms", in_ms(switch.file.tolerance.patience));
    let at = switch.line.seen[mark..]
        .iter()
        .find(|seen| is_it(seen))
        .map_or(Instant::ZERO, |seen| seen.at);
    switch.mark = switch.line.seen.len();
    Ok(at.since(began))
}

/// Holds if a pause of `count` quanta lasts so long, up to the quiet time more.
fn lasts(switch: &Switch<'_>, took: Duration, count: u16) -> Check {
    let expected = quanta(switch, count);
    let least = Duration::from_ps(expected.as_ps() * 9 / 10);
    must!(took >= least, "a pause of {} ms lasts {} ms", in_ms(expected), in_ms(took));
    let most = expected + switch.quiet() * 3;
    if took > most {
        let text = format!("a pause of {} ms lasts {} ms", in_ms(expected), in_ms(took));
        return Err(Fault::unclear(text));
    }
    Ok(format!("a pause of {} ms lasts {} ms", in_ms(expected), in_ms(took)))
}

fn expires(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pause_port;
    let streams = streams(switch, port, &[0])?;
    let took = release(switch, port, &pause(u16::MAX), &streams[0])?;
    lasts(switch, took, u16::MAX)
}

fn one_priority(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pfc_port;
    let streams = streams(switch, port, &[LOSSLESS, 0, 5])?;
    let began = switch.line.now();
    say(switch, port, &pfc(1 << LOSSLESS, u16::MAX))?;
    for (stream, priority) in streams[1..].iter().zip([0, 5]) {
        passes_at_once(switch, stream, began)
            .map_err(|fault| fault.of(format!("priority {priority}")))?;
    }
    let came = passes(switch, &streams[0], 0)?;
    say(switch, port, &pfc(1 << LOSSLESS, 0))?;
    must!(came == 0, "priority {LOSSLESS} passes although it is paused");
    held(switch, &streams[0])?;
    Ok(format!("priority {LOSSLESS} waits, 0 and 5 pass"))
}

fn not_enabled(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pfc_port;
    let streams = streams(switch, port, &[LOSSLESS])?;
    // A time for every priority, and none of them enabled.
    let times = [u16::MAX; 8];
    let began = switch.line.now();
    say(switch, port, &control(MacControl::Pfc(Pfc { reserved: 0, enabled: 0, times })))?;
    passes_at_once(switch, &streams[0], began)
        .map_err(|fault| fault.of(format!("priority {LOSSLESS}")))?;
    Ok("a time without its bit in the vector stops nothing".to_owned())
}

fn unknown_is_ignored(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pfc_port;
    let streams = streams(switch, port, &[LOSSLESS])?;
    let elsewhere = readdressed(
        pfc(0xff, u16::MAX),
        MacAddress::from_number(0x0200_0000_4242),
        switch.station(9),
    );
    for frame in [unknown(0x0202), unknown(0xffff), elsewhere] {
        let began = switch.line.now();
        say(switch, port, &frame)?;
        passes_at_once(switch, &streams[0], began)?;
    }
    Ok("unknown opcodes and another destination stop nothing".to_owned())
}

fn refreshed(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pfc_port;
    let streams = streams(switch, port, &[LOSSLESS])?;
    let stop = pfc(1 << LOSSLESS, u16::MAX);
    say(switch, port, &stop)?;
    let half = switch.line.now() + Duration::from_ps(quanta(switch, u16::MAX).as_ps() / 2);
    switch.line.wait(half, |_| false)?;
    let took = release(switch, port, &stop, &streams[0])?;
    lasts(switch, took, u16::MAX)
}

/// Two senders that obey fill one receiver, which is paused meanwhile.
fn lossless(switch: &mut Switch<'_>) -> Check {
    const FRAMES: u32 = 400;
    let to = switch.station(2);
    switch.teach(2, to)?;
    let senders = [1u8, 3];
    let payload = (switch.file.device.mtu.get() as usize - HEADERS).min(2048);
    let port = 2;
    let stop = pfc(1 << LOSSLESS, u16::MAX);
    switch.line.send(port, &stop.octets)?;
    let mut held_back = 0u64;
    for number in 0..FRAMES {
        for sender in senders {
            while is_paused(switch, sender) {
                held_back += 1;
                if held_back == 1 {
                    // The receiver goes on once the device has asked for it.
                    switch.line.send(port, &pfc(1 << LOSSLESS, 0).octets)?;
                }
                let until = switch.line.now() + Duration::from_us(1_000);
                switch.line.wait(until, |_| false)?;
            }
            let from = switch.station(10 + u16::from(sender));
            let full = frame(&roce(1, 2, LOSSLESS, number), payload);
            let full = tagged(readdressed(full, to, from), LOSSLESS);
            switch.line.send(sender, &full.octets)?;
        }
        switch.line.poll()?;
    }
    switch.line.send(port, &pfc(1 << LOSSLESS, 0).octets)?;
    let (mark, wanted) = (switch.mark, FRAMES as usize * senders.len());
    let count = |seen: &[Seen]| {
        seen[mark..]
            .iter()
            .filter(|seen| seen.port == 2 && quanta_for(&seen.frame, LOSSLESS).is_none())
            .count()
    };
    let until = switch.line.now() + switch.file.tolerance.patience * 4;
    switch.line.wait(until, |seen| count(seen) >= wanted)?;
    let came = count(&switch.line.seen);
    must!(came == wanted, "{came} of {wanted} frames arrive");
    must!(held_back > 0, "{wanted} frames fill no memory: the device has never paused a sender");
    Ok(format!("{wanted} of {wanted} frames arrive, and the senders were paused"))
}

/// Frames of 1000 octets with FCS that two ports send to a third at once, and that fill its queue.
const BURST: u32 = 192;

/// Sends the burst to a station behind `port`, on one priority; the number of the first frame that can come.
fn burst(switch: &mut Switch<'_>, port: u8, priority: u8) -> Check<usize> {
    let to = switch.station(2);
    switch.teach(port, to)?;
    let mark = switch.line.seen.len();
    for number in 0..BURST {
        for sender in switch.others(port).into_iter().take(2) {
            let from = switch.station(20 + u16::from(sender));
            let full = readdressed(frame(&roce(1, 2, priority, number), 934), to, from);
            switch.line.send(sender, &tagged(full, priority).octets)?;
        }
    }
    Ok(mark)
}

/// The frames of a burst that have come.
fn of_burst(switch: &Switch<'_>, mark: usize, port: u8) -> Vec<rate::Came> {
    rate::came(switch.line, mark, port, |seen| seen.frame.octets.len() > 900)
}

/// Waits until no frame has come for the quiet time.
fn drain(switch: &mut Switch<'_>, mark: usize, port: u8) -> Check<Vec<rate::Came>> {
    loop {
        let before = of_burst(switch, mark, port).len();
        let until = switch.line.now() + switch.quiet();
        switch.line.wait(until, |_| false)?;
        let all = of_burst(switch, mark, port);
        if all.len() == before {
            return Ok(all);
        }
    }
}

fn no_faster(switch: &mut Switch<'_>) -> Check {
    let port = switch.file.tolerance.line_port;
    let mark = burst(switch, port, 0)?;
    let all = drain(switch, mark, port)?;
    rate::no_faster(&all, switch.file.tolerance.line_rate, switch.line.doubt())
}

/// A queue that is full stops within the response time, stays so, and goes on afterwards.
fn busy_port_stops(switch: &mut Switch<'_>) -> Check {
    longest(switch)?;
    let port = switch.file.tolerance.pfc_port;
    let mark = burst(switch, port, LOSSLESS)?;
    let began = switch.line.now();
    switch.line.send(port, &pfc(1 << LOSSLESS, u16::MAX).octets)?;
    let until = began + Duration::from_ps(quanta(switch, u16::MAX).as_ps() / 2);
    switch.line.wait(until, |_| false)?;
    switch.line.send(port, &pfc(1 << LOSSLESS, 0).octets)?;
    let all = drain(switch, mark, port)?;
    let (mbps, doubt) = (switch.file.tolerance.pause_rate, switch.line.doubt());
    let before = rate::silent(&all, (began, until), mbps, doubt)?;
    if before + 16 > all.len() {
        return Err(Fault::unclear(format!(
            "{before} of {} frames had come before it could stop",
            all.len()
        )));
    }
    Ok(format!("{before} frames come until it stops, and {} afterwards", all.len() - before))
}

/// Whether the device's last pause for the lossless priority at `port` was not an XON.
fn is_paused(switch: &mut Switch<'_>, port: u8) -> bool {
    let here = switch.line.seen.iter().rev().filter(|seen| seen.port == port);
    let last = here.filter_map(|seen| quanta_for(&seen.frame, LOSSLESS)).next();
    last.is_some_and(|quanta| quanta > 0)
}
