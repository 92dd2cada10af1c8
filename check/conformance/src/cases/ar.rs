//! AR: adaptive routing by snooped notifications: a switch with two ways to an adapter, whose neighbours notify it.

use crate::ethernet::roomy;
use crate::prelude::*;
use proto::wire::ethernet::plan;
use testbed::frames::congestion::{CNM, CNPV, Message, message, opinion, sent};

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts =
    &[("AR-01", diverted), ("AR-02", least), ("AR-03", forged), ("AR-04", absorbed)];

/// The switch s0 has adapters h1 and h2 at ports 1 and 2, and ways to h3 by ports 3 and 4.
const DIAMOND: &str = include_str!("ar.toml");
const WAYS: [u8; 2] = [3, 4];
/// The destination of all frames.
const TO: u8 = 3;
/// Octets of a frame without FCS: 0.8 ms on the line.
const LENGTH: usize = 1_000;
/// For how long an entry of the congestion table lasts.
const TIMEOUT: Duration = us(60_000);

/// When frame `number` comes.
fn frame_at(number: u64) -> Instant {
    ms(150) + us(10_000) * number
}

/// A notification about congestion on the way to h3, for h1.
fn notification() -> Frame {
    let switch = plan::port_mac(Lid::new(100), PortNumber::from_index(0));
    message(opinion(switch, TO.into()), (switch, 1), CNM, 100)
}

/// The way that the first frame has taken, and the other one.
fn ways(seen: &[Seen]) -> [u8; 2] {
    let first = seen.iter().find(|seen| WAYS.contains(&seen.port)).map(|seen| seen.port);
    if first == Some(WAYS[1]) { [WAYS[1], WAYS[0]] } else { WAYS }
}

/// Ten frames from h1 to h3, and notifications: frame number, whether by the other way, and how many.
fn run(on: Level, absorb: bool, notified: &[(u64, bool, u64)]) -> Result<Record> {
    let room = roomy(&format!(
        ", cn = {{ cnpv = [{CNPV}], cnm_priority = {CNM} }}, adaptive = {{ timeout = \"{} ms\", absorb = {absorb} }}",
        TIMEOUT.as_ps() / 1_000_000_000
    ));
    play(on, &DIAMOND.replace("# switch\n", &room), "s0", |script| {
        for number in 0..10 {
            let data = sent(1, TO, CNPV, LENGTH);
            script.at(frame_at(number), move |bed| bed.send_frame(1, &data));
        }
        for (number, by_other, count) in notified.iter().copied() {
            script.at(frame_at(number) + us(5_000), move |bed| {
                let port = ways(bed.seen())[usize::from(by_other)];
                (0..count).for_each(|_| bed.send_frame(port, &notification()));
            });
        }
        // An adapter speaks of another's way.
        script.at(frame_at(0) + us(7_000), |bed| bed.send_frame(2, &notification()));
    })
}

/// Both ways, and for each of the ten frames whether it took the other one.
fn taken(record: &Record) -> Result<([u8; 2], Vec<bool>)> {
    let ways = ways(&record.seen);
    let left: Vec<u8> =
        record.seen.iter().filter(|seen| WAYS.contains(&seen.port)).map(|seen| seen.port).collect();
    same("frames that leave", left.len(), 10)?;
    Ok((ways, left.iter().map(|port| *port == ways[1]).collect()))
}

/// How many notifications have left for h1.
fn passed_on(record: &Record) -> Result<usize> {
    Ok(Message::among(record.packets(1).map(|seen| &seen.frame))?.len())
}

/// The first way is notified once, behind frame 0; its entry ends before frame 7.
static ONE: Shared<Record> = Shared::new(|on| run(on, false, &[(0, false, 1)]));
/// Then the other way is notified twice, behind frame 3.
static BOTH: Shared<Record> = Shared::new(|on| run(on, false, &[(0, false, 1), (3, true, 2)]));
static ABSORBED: Shared<Record> = Shared::new(|on| run(on, true, &[(0, false, 1), (3, true, 2)]));

/// AR-01.
fn diverted(on: Level) -> Finding {
    let record = ONE.on(on)?;
    let ([first, other], taken) = taken(&record)?;
    let expected = [false, true, true, true, true, true, true, false, false, false];
    same("frames by the other way", &taken[..], &expected[..])?;
    same("notifications snooped", record.named(first, "ar_snooped_packets"), 1)?;
    same("frames counted as diverted", record.named(other, "ar_diverted_packets"), 6)?;
    same("frames diverted to the first way", record.named(first, "ar_diverted_packets"), 0)?;
    same("notifications that reach the source", passed_on(&record)?, 1)?;
    Ok("frames take the other way until 60 ms after the notification, which goes on to its source"
        .into())
}

/// AR-02: two notifications weigh three times as much as one.
fn least(on: Level) -> Finding {
    let record = BOTH.on(on)?;
    let ([first, other], taken) = taken(&record)?;
    // Behind frame 3 the first way has less feedback; from frame 7 on it is free.
    let expected = [false, true, true, true, false, false, false, false, false, false];
    same("frames by the other way", &taken[..], &expected[..])?;
    same("notifications snooped there", record.named(other, "ar_snooped_packets"), 2)?;
    same("frames counted as diverted", record.named(other, "ar_diverted_packets"), 3)?;
    let remote = [first, other].map(|port| record.named(port, "ar_remote_entries"));
    same("entries left at the end", remote, [0, 0])?;
    same("notifications that reach the source", passed_on(&record)?, 3)?;
    Ok("with both ways notified, frames take the one with less feedback".into())
}

/// AR-03.
fn forged(on: Level) -> Finding {
    let record = ONE.on(on)?;
    same("losses at the adapter's port", record.lost(2), "notification_forged 1")?;
    same("refusals counted there", record.named(2, "ar_refused_packets"), 1)?;
    Ok("an adapter's notification of another's way is dropped, and changes nothing".into())
}

/// AR-04.
fn absorbed(on: Level) -> Finding {
    let record = ABSORBED.on(on)?;
    let ([first, other], _) = taken(&record)?;
    same("notifications absorbed", record.named(first, "ar_absorbed_packets"), 1)?;
    same("absorbed while no way is free", record.named(other, "ar_absorbed_packets"), 0)?;
    same("notifications that reach the source", passed_on(&record)?, 2)?;
    Ok("a notification ends where another way is free, and goes on where none is".into())
}
