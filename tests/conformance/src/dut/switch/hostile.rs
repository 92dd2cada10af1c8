//! MAL: frames that no station should send do no harm.

use super::{Scripts, Switch};
use crate::dut::verdict::Check;
use proto::frame::Frame;
use proto::random::Random;
use proto::units::Duration;
use testbed::frames::ethernet::{frame, pfc, readdressed, roce, tagged};

pub(super) const SCRIPTS: Scripts =
    &[("MAL-01", truncated), ("MAL-02", random), ("MAL-03", contradictory)];

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
    let base = readdressed(frame(&roce(1, 2, 3, 1), 32), b, a);
    let mut random = Random::stream(29, "dut", "hostile frames");
    let frames = (0..FRAMES).map(move |_| {
        let mut wild = base.clone();
        for _ in 0..=random.below(6) {
            // Behind the addresses, so that no station moves.
            let at = 12 + random.below(wild.octets.len() as u64 - 12) as usize;
            wild.octets[at] = random.below(256) as u8;
        }
        // No pauses: they are for cases of their own.
        if wild.octets[12..14] == [0x88, 0x08] {
            wild.octets[12] = 0;
        }
        wild
    });
    harmless(switch, frames)
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
