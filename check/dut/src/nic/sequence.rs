//! SEQ: PSNs of requests and answers, in both directions.

use super::pair::{GAP, Pair, Terms, names};
use super::{Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::ids::Psn;
use proto::wire::infiniband::Syndrome;
use verbs::work::{Operation, Status};

pub(super) const SCRIPTS: Scripts = &[
    ("SEQ-01", acknowledged),
    ("SEQ-02", duplicate),
    ("SEQ-03", gap),
    ("SEQ-04", one_nak),
    ("SEQ-05", recovers),
    ("SEQ-06", wraps),
    ("SEQ-07", goes_back),
    ("SEQ-08", coalesced),
    ("SEQ-09", future_ack),
    ("SEQ-10", old_ack),
    ("SEQ-11", message_numbers),
    ("SEQ-12", nak_acknowledges),
    ("SEQ-13", second_gap),
    ("SEQ-14", requester_wraps),
];

fn responder(nic: &mut Nic<'_>, terms: Terms) -> Check<Pair> {
    let pair = nic.connect(terms)?;
    nic.post_receives(&pair, 8)?;
    Ok(pair)
}

/// Sends message `n`, which must be acknowledged by its own PSN.
fn taken(nic: &mut Nic<'_>, pair: &Pair, n: u32) -> Check<u32> {
    let mark = nic.mark();
    nic.send(&pair.message(n))?;
    let (syndrome, psn, msn) = nic.answer(pair, mark)?;
    let is_ack = matches!(syndrome, Syndrome::Ack { .. }) && psn == pair.in_psn(n);
    must!(is_ack, "message {n} is answered by {syndrome:?} of PSN {:06x}", psn.get());
    Ok(msn)
}

fn delivered(nic: &mut Nic<'_>, pair: &Pair, count: usize) -> Check<()> {
    let mut received = nic.received(pair, count)?;
    received.extend(nic.received(pair, 0)?);
    must!(received.len() == count, "{} messages are delivered, not {count}", received.len());
    let good = received.iter().all(|done| done.status == Status::Success);
    must!(
        good,
        "a receive completes with {:?}",
        received.iter().map(|done| done.status).collect::<Vec<_>>()
    );
    Ok(())
}

fn acknowledged(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    for n in 0..4 {
        taken(nic, &pair, n)?;
    }
    delivered(nic, &pair, 4)?;
    Ok("four SENDs, each acknowledged once with its PSN".to_owned())
}

fn duplicate(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    taken(nic, &pair, 0)?;
    taken(nic, &pair, 1)?;
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    must!(matches!(syndrome, Syndrome::Ack { .. }), "a duplicate is answered by {syndrome:?}");
    // The responder may acknowledge the duplicate's PSN, or the latest.
    must!(psn == pair.in_psn(0) || psn == pair.in_psn(1), "PSN {:06x}", psn.get());
    delivered(nic, &pair, 2)?;
    Ok("a duplicate is acknowledged and not delivered".to_owned())
}

fn gap(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    taken(nic, &pair, 0)?;
    let mark = nic.mark();
    nic.send(&pair.message(2))?;
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    must!(syndrome == GAP, "a gap is answered by {syndrome:?}");
    must!(
        psn == pair.in_psn(1),
        "the NAK names {:06x}, missing is {:06x}",
        psn.get(),
        pair.in_psn(1).get()
    );
    delivered(nic, &pair, 1)?;
    Ok("a NAK of a sequence error with the first missing PSN".to_owned())
}

fn one_nak(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    let mark = nic.mark();
    for n in 1..5 {
        nic.send(&pair.message(n))?;
    }
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    must!(syndrome == GAP && psn == pair.in_psn(0), "{syndrome:?} of PSN {:06x}", psn.get());
    Ok("four packets behind one gap draw one NAK".to_owned())
}

fn recovers(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    let mark = nic.mark();
    nic.send(&pair.message(1))?;
    nic.answer(&pair, mark)?;
    for n in 0..3 {
        taken(nic, &pair, n)?;
    }
    delivered(nic, &pair, 3)?;
    Ok("after the missing packet all are taken in order".to_owned())
}

fn second_gap(nic: &mut Nic<'_>) -> Check {
    let pair = responder(nic, Terms::default())?;
    for first in [0, 1] {
        let mark = nic.mark();
        nic.send(&pair.message(first + 1))?;
        let (syndrome, psn, _) =
            nic.answer(&pair, mark).map_err(|fault| fault.of(format!("gap {first}")))?;
        must!(
            syndrome == GAP && psn == pair.in_psn(first),
            "{syndrome:?} of PSN {:06x}",
            psn.get()
        );
        taken(nic, &pair, first)?;
    }
    Ok("each gap draws a NAK of its own".to_owned())
}

fn wraps(nic: &mut Nic<'_>) -> Check {
    let terms = Terms { receive_psn: 0xff_fffe, ..Terms::default() };
    let pair = responder(nic, terms)?;
    for n in 0..4 {
        taken(nic, &pair, n)?;
    }
    delivered(nic, &pair, 4)?;
    let mark = nic.mark();
    nic.send(&pair.message(1))?;
    let (syndrome, ..) = nic.answer(&pair, mark)?;
    must!(matches!(syndrome, Syndrome::Ack { .. }), "a duplicate before the wrap: {syndrome:?}");
    delivered(nic, &pair, 0)?;
    Ok("PSN 0 follows ffffff, and ffffff is then a duplicate".to_owned())
}

fn message_numbers(nic: &mut Nic<'_>) -> Check {
    use proto::wire::infiniband::Opcode;
    let pair = responder(nic, Terms::default())?;
    let mark = nic.mark();
    nic.send(&pair.packet(Opcode::RC_SEND_FIRST, 0, &[1; 1024]))?;
    nic.send(&pair.packet(Opcode::RC_SEND_LAST, 1, &[2; 10]))?;
    let got = nic.packets(mark, 1)?;
    let last =
        got.last().and_then(|got| got.extended.aeth).ok_or_else(|| Fault::fail("no answer"))?;
    must!(
        last.message_sequence_number == 1,
        "MSN {} after one message",
        last.message_sequence_number
    );
    let msn = taken(nic, &pair, 2)?;
    must!(msn == 2, "MSN {msn} after two messages");
    Ok("the MSN counts messages, not packets".to_owned())
}

/// A pair that has sent `count` SENDs of one packet.
fn requester(nic: &mut Nic<'_>, terms: Terms, count: u32) -> Check<Pair> {
    let pair = nic.connect(terms)?;
    let mark = nic.mark();
    for n in 0..count {
        nic.post(&pair, Operation::Send, u64::from(n), 32)?;
    }
    nic.exactly(&pair, mark, count as usize)?;
    Ok(pair)
}

fn completed(nic: &mut Nic<'_>, pair: &Pair, count: usize) -> Check<()> {
    let sent = nic.sent(pair, count)?;
    must!(sent.len() == count, "{} of {count} requests complete", sent.len());
    let status: Vec<Status> = sent.iter().map(|done| done.status).collect();
    must!(status.iter().all(|status| *status == Status::Success), "they complete with {status:?}");
    Ok(())
}

fn psns(got: &[super::Got]) -> Vec<Psn> {
    got.iter().map(|got| got.bth.psn).collect()
}

fn goes_back(nic: &mut Nic<'_>) -> Check {
    let pair = requester(nic, Terms::default(), 5)?;
    let mark = nic.mark();
    nic.refuse(&pair, GAP, pair.out_psn(2))?;
    let got = nic.packets(mark, 3)?;
    let expected = [2, 3, 4].map(|n| pair.out_psn(n));
    must!(psns(&got) == expected, "after a NAK of the third it sends {}", names(&got));
    nic.acknowledge(&pair, pair.out_psn(4), 5)?;
    completed(nic, &pair, 5)?;
    Ok("after a NAK exactly the packets from its PSN on come again".to_owned())
}

fn coalesced(nic: &mut Nic<'_>) -> Check {
    let pair = requester(nic, Terms::default(), 5)?;
    nic.acknowledge(&pair, pair.out_psn(4), 5)?;
    completed(nic, &pair, 5)?;
    Ok("one acknowledgement completes all five".to_owned())
}

fn future_ack(nic: &mut Nic<'_>) -> Check {
    let pair = requester(nic, Terms::default(), 2)?;
    nic.acknowledge(&pair, pair.out_psn(9), 2)?;
    let sent = nic.sent(&pair, 0)?;
    let good = sent.iter().filter(|done| done.status == Status::Success).count();
    must!(good == 0, "an acknowledgement of a PSN that was not sent completes {good} requests");
    nic.acknowledge(&pair, pair.out_psn(1), 2)?;
    completed(nic, &pair, 2)?;
    Ok("it completes nothing".to_owned())
}

fn old_ack(nic: &mut Nic<'_>) -> Check {
    let pair = requester(nic, Terms::default(), 3)?;
    nic.acknowledge(&pair, pair.out_psn(1), 2)?;
    completed(nic, &pair, 2)?;
    let mark = nic.mark();
    nic.acknowledge(&pair, pair.out_psn(0), 1)?;
    let sent = nic.sent(&pair, 0)?;
    must!(sent.is_empty(), "an old acknowledgement completes {sent:?}");
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "an old acknowledgement draws {}", names(&got));
    nic.acknowledge(&pair, pair.out_psn(2), 3)?;
    completed(nic, &pair, 1)?;
    Ok("an old acknowledgement has no effect".to_owned())
}

fn nak_acknowledges(nic: &mut Nic<'_>) -> Check {
    let pair = requester(nic, Terms::default(), 4)?;
    nic.refuse(&pair, GAP, pair.out_psn(2))?;
    completed(nic, &pair, 2)?;
    Ok("a NAK acknowledges what is before its PSN".to_owned())
}

fn requester_wraps(nic: &mut Nic<'_>) -> Check {
    let terms = Terms { send_psn: 0xff_fffe, ..Terms::default() };
    let pair = requester(nic, terms, 4)?;
    let mark = nic.mark();
    nic.refuse(&pair, GAP, pair.out_psn(1))?;
    let got = nic.packets(mark, 3)?;
    must!(psns(&got) == [1, 2, 3].map(|n| pair.out_psn(n)), "it sends {}", names(&got));
    nic.acknowledge(&pair, pair.out_psn(3), 4)?;
    completed(nic, &pair, 4)?;
    Ok("it goes back and completes over the wrap".to_owned())
}
