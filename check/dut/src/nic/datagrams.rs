//! UD and UC: services without acknowledgement.

use super::pair::{Pair, QKEY, RECEIVES, Terms, content, names};
use super::{Nic, Packet, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::ids::QueuePairNumber;
use proto::wire::infiniband::{Deth, Opcode};
use verbs::attributes::Service;
use verbs::work::{DATAGRAM_HEADER, Operation, Status};

pub(super) const SCRIPTS: Scripts = &[
    ("UD-01", receives),
    ("UD-02", queue_key),
    ("UD-03", sends),
    ("UD-04", any_sequence),
    ("UC-01", silent),
    ("UC-02", loses),
    ("UC-03", drops_partial),
];

fn datagram(pair: &Pair, n: u32, queue_key: u32) -> Packet {
    let mut packet = pair.packet(Opcode::UD_SEND_ONLY, n, &content(n, 40));
    packet.bth.ack_request = false;
    packet.extended.deth =
        Some(Deth { queue_key, reserved8: 0, source: QueuePairNumber::truncate(0x77) });
    packet
}

fn receives(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect_as(Service::Ud, Terms::default())?;
    nic.post_receives(&pair, 2)?;
    let mark = nic.mark();
    nic.send(&datagram(&pair, 0, QKEY))?;
    let received = nic.received(&pair, 1)?;
    let done = received.first().ok_or_else(|| Fault::fail("a datagram is not delivered"))?;
    must!(done.status == Status::Success, "it completes as {done:?}");
    must!(
        done.length == DATAGRAM_HEADER + 40,
        "its length is {}, with 40 octets of headers",
        done.length
    );
    must!(done.source == 0x77, "its source is {:x}", done.source);
    let octets = nic.memory(&pair, RECEIVES + u64::from(DATAGRAM_HEADER), 40)?;
    must!(octets == content(0, 40), "the octets are not those that were sent");
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "a datagram is answered by {}", names(&got));
    Ok("delivered behind 40 octets of headers, with its source, and not answered".to_owned())
}

fn queue_key(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect_as(Service::Ud, Terms::default())?;
    nic.post_receives(&pair, 2)?;
    nic.send(&datagram(&pair, 0, QKEY ^ 1))?;
    let received = nic.received(&pair, 0)?;
    must!(received.is_empty(), "a datagram with another Q_Key is delivered");
    nic.send(&datagram(&pair, 1, QKEY))?;
    must!(nic.received(&pair, 1)?.len() == 1, "then a good datagram is not delivered");
    Ok("another Q_Key is dropped".to_owned())
}

fn sends(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect_as(Service::Ud, Terms::default())?;
    let mark = nic.mark();
    nic.post(&pair, Operation::Send, 1, 40)?;
    let got = nic.exactly(&pair, mark, 1)?;
    must!(got[0].bth.opcode == Opcode::UD_SEND_ONLY, "it sends {}", names(&got));
    let deth = got[0].extended.deth.ok_or_else(|| Fault::fail("no DETH"))?;
    must!(deth.queue_key == QKEY && deth.source == pair.number, "{deth:?}");
    if got[0].bth.ack_request {
        return Err(Fault::fail("AckReq in a datagram"));
    }
    must!(nic.sent(&pair, 1)?.len() == 1, "it does not complete without an answer");
    Ok("DETH with Q_Key and source, no AckReq, complete without an answer".to_owned())
}

fn any_sequence(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect_as(Service::Ud, Terms::default())?;
    nic.post_receives(&pair, 4)?;
    for n in [5, 900, 2] {
        nic.send(&datagram(&pair, n, QKEY))?;
    }
    let received = nic.received(&pair, 3)?;
    must!(
        received.len() == 3,
        "{} of 3 datagrams with arbitrary PSNs are delivered",
        received.len()
    );
    Ok("PSNs of datagrams do not matter".to_owned())
}

fn unreliable(nic: &mut Nic<'_>) -> Check<Pair> {
    let pair = nic.connect_as(Service::Uc, Terms::default())?;
    nic.post_receives(&pair, 4)?;
    Ok(pair)
}

fn uc(pair: &Pair, opcode: Opcode, n: u32, length: usize) -> Packet {
    let mut packet = pair.packet(opcode, n, &content(n, length));
    packet.bth.ack_request = false;
    packet
}

fn silent(nic: &mut Nic<'_>) -> Check {
    let pair = unreliable(nic)?;
    let mark = nic.mark();
    nic.send(&uc(&pair, Opcode::UC_SEND_ONLY, 0, 40))?;
    must!(nic.received(&pair, 1)?.len() == 1, "a message is not delivered");
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "it is answered by {}", names(&got));
    Ok("delivered, and not answered".to_owned())
}

fn loses(nic: &mut Nic<'_>) -> Check {
    let pair = unreliable(nic)?;
    let mark = nic.mark();
    for n in [0, 2] {
        nic.send(&uc(&pair, Opcode::UC_SEND_ONLY, n, 40))?;
    }
    let received = nic.received(&pair, 2)?;
    must!(received.len() == 2, "{} of 2 messages around a lost one are delivered", received.len());
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "a gap is answered by {}", names(&got));
    Ok("the message behind a gap is delivered, and nothing is answered".to_owned())
}

fn drops_partial(nic: &mut Nic<'_>) -> Check {
    let pair = unreliable(nic)?;
    nic.send(&uc(&pair, Opcode::UC_SEND_FIRST, 0, 1024))?;
    // The Middle with number 1 is lost.
    nic.send(&uc(&pair, Opcode::UC_SEND_LAST, 2, 8))?;
    nic.send(&uc(&pair, Opcode::UC_SEND_ONLY, 3, 40))?;
    let mut received = nic.received(&pair, 1)?;
    received.extend(nic.received(&pair, 0)?);
    let good: Vec<u32> = received
        .iter()
        .filter(|done| done.status == Status::Success)
        .map(|done| done.length)
        .collect();
    must!(good == [40], "messages of {good:?} octets are delivered, not the whole one of 40");
    Ok("the message with a gap is not delivered, the next is".to_owned())
}
