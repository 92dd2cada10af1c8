//! MTU: lengths of packets and the grammar of First, Middle and Last.

use super::pair::{PATH_MTU, Pair, Terms, names};
use super::{Nic, Scripts};
use crate::verdict::{Check, must};
use proto::wire::infiniband::{NakCode, Opcode, Syndrome};
use verbs::work::Status;

pub(super) const SCRIPTS: Scripts = &[
    ("MTU-01", |nic| good(nic, &[(Opcode::RC_SEND_ONLY, FULL)])),
    ("MTU-02", |nic| good(nic, &[(Opcode::RC_SEND_FIRST, FULL), (Opcode::RC_SEND_LAST, 1)])),
    ("MTU-03", |nic| refused(nic, &[(Opcode::RC_SEND_MIDDLE, FULL)])),
    ("MTU-04", |nic| refused(nic, &[(Opcode::RC_SEND_ONLY, FULL + 4)])),
    ("MTU-05", |nic| refused(nic, &[(Opcode::RC_SEND_FIRST, FULL - 4)])),
    ("MTU-06", |nic| refused(nic, &[(Opcode::RC_SEND_FIRST, FULL), (Opcode::RC_SEND_ONLY, 8)])),
    ("MTU-07", |nic| refused(nic, &[(Opcode::RC_SEND_FIRST, FULL), (Opcode::RC_WRITE_LAST, 8)])),
    ("MTU-08", |nic| refused(nic, &[(Opcode::RC_SEND_LAST, 8)])),
];

const FULL: usize = PATH_MTU.1;

/// Sends packets of these opcodes and lengths, one after the other.
fn play(nic: &mut Nic<'_>, rows: &[(Opcode, usize)]) -> Check<(Pair, usize)> {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 2)?;
    let mark = nic.mark();
    for (n, (opcode, length)) in (0..).zip(rows) {
        let payload: Vec<u8> = (0..*length).map(|at| (at as u32 ^ n) as u8).collect();
        nic.send(&pair.packet(*opcode, n, &payload))?;
    }
    Ok((pair, mark))
}

fn good(nic: &mut Nic<'_>, rows: &[(Opcode, usize)]) -> Check {
    let (pair, mark) = play(nic, rows)?;
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    let last = pair.in_psn(rows.len() as u32 - 1);
    must!(
        matches!(syndrome, Syndrome::Ack { .. }) && psn == last,
        "{syndrome:?} of PSN {:06x}",
        psn.get()
    );
    let received = nic.received(&pair, 1)?;
    let length: usize = rows.iter().map(|(_, length)| length).sum();
    let is_whole = received.len() == 1 && received[0].length as usize == length;
    must!(is_whole, "delivered: {received:?}");
    Ok(format!("a message of {length} octets in {} packets is taken", rows.len()))
}

fn refused(nic: &mut Nic<'_>, rows: &[(Opcode, usize)]) -> Check {
    let (pair, mark) = play(nic, rows)?;
    let got = nic.packets(mark, 1)?;
    let is_refusal = |syndrome| syndrome == Syndrome::Nak(NakCode::InvalidRequest);
    let is_refused =
        got.iter().any(|got| got.extended.aeth.is_some_and(|aeth| is_refusal(aeth.syndrome)));
    let received = nic.received(&pair, 0)?;
    let good = received.iter().filter(|done| done.status == Status::Success).count();
    must!(good == 0, "it is delivered; the answer is {}", names(&got));
    must!(is_refused, "the answer is {}", names(&got));
    Ok("a NAK of an invalid request, and nothing is delivered".to_owned())
}
