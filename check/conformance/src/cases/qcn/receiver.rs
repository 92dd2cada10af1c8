//! QCN-06: messages to a NIC that sends, of unknown versions and with reserved bits set; their effect on its
//! rate is read off its line.

use super::{qcn, star};
use crate::ethernet::{FRAME, RATE};
use crate::prelude::*;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Cnm, MacAddress, VlanTag};
use testbed::frames::congestion::{self as frames, CNM, CNPV, opinion};

/// Nothing but messages changes the rate: neither timer nor counter.
const STILL: &str =
    "rpg_time_reset = \"100 s\"\nrpg_byte_reset = \"1 GB\"\nrpg_min_rate = \"0.1 Mbps\"";
/// When the first message comes, how far apart they are, and what of that time is for frames that left
/// before the message was known.
const FIRST: Instant = ms(300);
const EVERY: Duration = us(200_000);
const AFTER: Duration = us(10_000);

fn notified_at(number: usize) -> Instant {
    FIRST + EVERY * number as u64
}

static RUN: Shared<Record> = Shared::new(|on| {
    let keys = format!("sl = {CNPV}\nstart = \"100 ms\"");
    let rest = qcn(STILL) + &backlog("flow", "h1", "h2", &keys);
    let domain = format!("cnpv = [{CNPV}]");
    play(on, &star(2, "1600 ms", &domain, &rest), "h1", |script| {
        for (number, (kind, _)) in KINDS.into_iter().enumerate() {
            let frame = message(kind, (1, 2));
            script.at(notified_at(number), move |bed| bed.send_frame(1, &frame));
        }
    })
});

/// QCN-06.
pub fn version(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let frame = Bytes::new(FRAME + VlanTag::LEN as u64);
    let (mut due, mut seen) = (RATE.get(), Vec::new());
    for (number, ((version, reserved), is_known)) in KINDS.into_iter().enumerate() {
        let what = format!("version {version}, reserved {reserved:#x}");
        let (from, to) = (notified_at(number), notified_at(number + 1));
        let expected: &[_] = if is_known { &[] } else { &[DropReason::Malformed] };
        same(format!("{what}: drops"), record.dropped(1, (from, to)), expected)?;
        if is_known {
            due = due / 4 * 3;
        }
        let times = record.packets(1).times();
        let mut times = times.into_iter().filter(|at| *at >= from + AFTER && *at < to);
        let first = times.next().ok_or_else(|| format!("{what}: nothing leaves"))?;
        let (last, gaps) = times.fold((first, 0), |(_, gaps), at| (at, gaps + 1));
        let octets = frame.get() * gaps;
        let rate =
            u128::from(octets) * 8_000_000_000_000 / u128::from(last.since(first).as_ps().max(1));
        let share = if on == Level::Live { 0.005 } else { 0.0005 };
        near(format!("{what}: rate"), rate as f64, due as f64, due as f64 * share)?;
        seen.push(format!("{:.2}", rate as f64 / 1e6));
    }
    let known = KINDS.iter().filter(|(_, is_known)| *is_known).count() as u64;
    same("messages heeded", record.named(1, "rp_cnm_handled"), known)?;
    same("messages discarded", record.named(1, "rp_cnm_malformed"), KINDS.len() as u64 - known)?;
    let flow = record.reading.flows.first().ok_or("the NIC has no flow")?;
    same("rate at the end", flow.rate.value, due)?;
    Ok(format!("versions 1 and 15 discarded, reserved bits ignored: {} Mb/s", seen.join(", ")))
}

/// The switch that sends messages.
const SWITCH: MacAddress = MacAddress::from_number(0x0200_0100_0064);

/// Version and reserved bits of messages, and whether such a one is heeded.
const KINDS: [((u8, u8), bool); 6] = [
    ((1, 0), false),
    ((15, 0), false),
    ((1, 0x3f), false),
    ((0, 0x3f), true),
    ((0, 1), true),
    ((0, 0), true),
];

/// A CNM to adapter `sender` about its frame to adapter `to`.
fn message((version, reserved): (u8, u8), (sender, to): (u16, u16)) -> Frame {
    let cnm = Cnm { version, reserved, ..opinion(SWITCH, to) };
    frames::message(cnm, (SWITCH, sender), CNM, LEAST)
}
