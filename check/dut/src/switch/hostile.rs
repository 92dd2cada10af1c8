//! MAL: frames that no station should send do no harm.

use super::{Scripts, Switch};
use crate::verdict::{Check, Fault};
use proto::frame::Frame;
use proto::random::Random;
use proto::units::Duration;
use proto::wire::ethernet::MacAddress;
use testbed::frames::ethernet::{frame, pfc, readdressed, roce, tagged};

pub(super) const SCRIPTS: Scripts =
    &[("MAL-01", truncated), ("MAL-02", random), ("MAL-03", contradictory), ("MAL-04", endured)];

/// Sends frames that may or may not come out, some at a time.
fn harmless(switch: &mut Switch<'_>, frames: impl Iterator<Item = Frame>) -> Check {
    let mut count = 0;
    for frame in frames {
        switch.line.send(1, &frame.octets)?;
        count += 1;
        if count % 32 == 0 {
            let until = switch.line.now() + Duration::from_us(1_000);
            switch.line.wait(until, |_| false)?;
        }
    }
    let until = switch.line.now() + switch.quiet();
    switch.line.wait(until, |_| false)?;
    switch.still_works()?;
    Ok(format!("{count} frames, and the device forwards as before"))
}

fn truncated(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let whole = tagged(readdressed(frame(&roce(1, 2, 3, 1), 8), b, a), 3);
    let cut = (14..whole.octets.len()).map(|length| {
        let mut cut = whole.clone();
        cut.octets.truncate(length);
        cut
    });
    let pauses = (14..60).map(|length| {
        let mut cut = pfc(0xff, 1);
        cut.octets.truncate(length);
        cut
    });
    let all: Vec<Frame> = cut.chain(pauses).collect();
    harmless(switch, all.into_iter())
}

fn random(switch: &mut Switch<'_>) -> Check {
    const FRAMES: usize = 10_000;
    let (a, b) = switch.pair()?;
    harmless(switch, wild(a, b).take(FRAMES))
}

/// Frames with random octets behind the addresses, so that no station moves.
fn wild(a: MacAddress, b: MacAddress) -> impl Iterator<Item = Frame> {
    let base = readdressed(frame(&roce(1, 2, 3, 1), 32), b, a);
    let mut random = Random::stream(29, "dut", "hostile frames");
    std::iter::repeat_with(move || {
        let mut wild = base.clone();
        for _ in 0..=random.below(6) {
            let at = 12 + random.below(wild.octets.len() as u64 - 12) as usize;
            wild.octets[at] = random.below(256) as u8;
        }
        // No pauses: they are for cases of their own.
        if wild.octets[12..14] == [0x88, 0x08] {
            wild.octets[12] = 0;
        }
        wild
    })
}

/// As many frames as a third of the time of a case permits; the text says how many. The device is asked every so often, so
/// what kills it is among the last frames of the capture.
fn endured(switch: &mut Switch<'_>) -> Check {
    const BETWEEN: usize = 2_000;
    let wanted = switch.file.tolerance.hostile;
    let third = Duration::from_ps(switch.file.tolerance.case.as_ps() / 3);
    let until = switch.line.now() + third;
    let (a, b) = switch.pair()?;
    let mut frames = wild(a, b);
    let mut count: u64 = 0;
    while count < wanted && switch.line.now() < until {
        for frame in frames.by_ref().take(BETWEEN.min((wanted - count) as usize)) {
            switch.line.send(1, &frame.octets)?;
            count += 1;
            if count.is_multiple_of(256) {
                switch.line.poll()?;
            }
        }
        switch.still_works().map_err(|fault| Fault {
            observed: format!("behind {count} frames: {}", fault.observed),
            ..fault
        })?;
        switch.forget();
        // An address that ages is flooded, also by ports that are slow.
        switch.pair()?;
    }
    Ok(format!("{count} of {wanted} frames, and the device forwards as before"))
}

fn contradictory(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let good = readdressed(frame(&roce(1, 2, 3, 1), 32), b, a);
    // Octet and value: version and IHL, total length, fragment, protocol, checksum, UDP length, opcode.
    let changes: [(usize, u8); 12] = [
        (14, 0x40),
        (14, 0x4f),
        (14, 0x65),
        (16, 0xff),
        (17, 0x00),
        (20, 0x3f),
        (23, 0xff),
        (24, 0x00),
        (38, 0xff),
        (39, 0x00),
        (42, 0xff),
        (43, 0x3f),
    ];
    let frames = changes.map(|(at, value)| {
        let mut wrong = good.clone();
        wrong.octets[at] = value;
        wrong
    });
    harmless(switch, frames.into_iter())
}
