//! FID-14 to FID-16: what a device has made and holds, withdraws or loses by itself is in its account.

use crate::ethernet::{ATTACHED, roomy, star};
use crate::prelude::*;
use proto::wire::ethernet::plan;
use proto::wire::internet::ArpOperation;
use testbed::frames::congestion::{CNM, CNPV, Message, sent};
use testbed::frames::ethernet::arp;

/// When ways out are shut, when frames come, when the account is read, and when the ways are opened.
const SHUT: Instant = ms(140);
const COME: Instant = ms(150);
const READ: Instant = ms(190);
const OPEN: Instant = ms(250);

/// FID-14: frames that wait at a switch whose congestion point samples nearly every one; its messages wait too.
pub fn own_messages(on: Level) -> Finding {
    const OUT: u8 = 2;
    const COUNT: u64 = 30;
    let domain = format!(", cn = {{ cnpv = [{CNPV}], cnm_priority = {CNM} }}");
    let scheme = "[scheme]\nkind = \"qcn\"\ncp_q_sp = \"100 B\"\ncp_sample_base = \"10 KB\"\n";
    let text = star(OUT, "400 ms", "priorities = \"pcp\"", &(roomy(&domain) + scheme));
    let record = play(on, &text, "s0", |script| {
        script.pause((SHUT, OPEN), &[1, OUT], 0xff);
        script.at(COME, |bed| {
            (0..COUNT).for_each(|_| bed.enqueue(1, sent(1, OUT, CNPV, 1_000).octets));
        });
        script.at(READ, |bed| bed.sample());
    })?;
    let early = record.all_packets().filter(|seen| seen.at < OPEN).count();
    same("packets that leave a shut port", early, 0)?;
    for reading in &record.samples {
        let made = reading.balance.injected;
        ensure!(made > 5, "the switch has made {made} messages");
        same("packets held", reading.balance.buffered, COUNT + made)?;
    }
    let frames = record.packets(1).map(|seen| &seen.frame);
    let messages = Message::among(frames)?.len() as u64;
    same("messages made and sent", record.reading.balance.injected, messages)?;
    same("frames forwarded", record.packets(OUT).total(), COUNT)?;
    same("packets held at the end", record.reading.balance.buffered, 0)?;
    Ok(format!("{COUNT} frames and {messages} messages of the switch's own: held, then sent"))
}

/// FID-15: traffic stops while some of its messages have not begun.
pub fn withdrawn(on: Level) -> Finding {
    let resume = ms(175);
    let keys = "arrivals = \"paced\"\nload = 1.0\ntransport = \"uc\"\nsize = \"4096 B\"\n\
                start = \"150 ms\"\nstop = \"200 ms\"";
    let rest = roomy("") + &traffic("flow", "h1", "h2", keys);
    let record = play(on, &star(2, "300 ms", "", &rest), "h1", |script| {
        script.pause((SHUT, resume), &[1], 0xff);
    })?;
    let flow = record.reading.flows.first().ok_or("the NIC has no flow")?;
    let (posted, completed, withdrawn) = (flow.messages, flow.completed, flow.withdrawn);
    ensure!(completed > 0 && withdrawn > 0, "{completed} complete, {withdrawn} are withdrawn");
    same("messages completed and withdrawn", completed.wrapping_add(withdrawn), posted)?;
    same("packets of two a message", record.packets(1).total(), 2 * completed)?;
    same("withdrawn in the account", record.reading.balance.withdrawn, withdrawn)?;
    let left: u64 = record.port(1).lanes.iter().map(|lane| lane.counters.source_queue.value).sum();
    same("octets that wait for their turn", left, 0)?;
    Ok(format!("{posted} messages: {completed} completed, {withdrawn} withdrawn, none left over"))
}

/// FID-16: neighbours ask the host of a NIC more than its queue of answers holds.
pub fn lost_answers(on: Level) -> Finding {
    const ROOM: u64 = 256;
    const MORE: u64 = 7;
    let rest = roomy("") + ATTACHED;
    let [host, own] = [200, 1].map(|one| (plan::mac(Lid::new(one)), plan::ipv4(Lid::new(one))));
    let record = play(on, &star(1, "400 ms", "", &rest), "h1", |script| {
        script.pause((SHUT, OPEN), &[1], 0xff);
        script.at(COME, move |bed| {
            let question = arp(ArpOperation::Request, host, own);
            (0..ROOM + MORE).for_each(|_| bed.send_frame(1, &question));
        });
    })?;
    same("answers sent", record.packets(1).total(), ROOM)?;
    same("answers lost and counted", record.named(1, "host_overruns"), MORE)?;
    Ok(format!("{ROOM} answers wait for the line, {MORE} are lost and counted"))
}
