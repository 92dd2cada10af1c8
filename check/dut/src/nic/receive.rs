//! RX: packets that the device must not take. Each row spoils a good SEND; the good one must be taken afterwards.

use super::pair::{Pair, Terms, names};
use super::{Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use bytes::BytesMut;
use proto::ids::QueuePairNumber;
use proto::wire::infiniband::{Opcode, Syndrome};
use proto::wire::internet::checksum::ipv4_header;
use proto::wire::roce::Layout;
use proto::wire::roce::checks::icrc;

pub(super) const SCRIPTS: Scripts = &[
    ("RX-01", |nic| ignored(nic, &ICRC)),
    ("RX-02", |nic| ignored(nic, &VERSIONS)),
    ("RX-03", |nic| ignored(nic, &PARTITIONS)),
    ("RX-04", unknown_pair),
    ("RX-05", |nic| ignored(nic, &RESERVED)),
    ("RX-06", |nic| ignored(nic, &HEADER_CHECKSUM)),
    ("RX-07", pad_beyond),
    ("RX-08", truncated),
    ("RX-09", |nic| ignored(nic, &DESTINATION)),
    ("RX-10", other_source),
    ("RX-11", |nic| ignored(nic, &OTHER_SERVICE)),
    ("RX-12", |nic| ignored(nic, &OTHER_PORT)),
];

/// Places in a frame of RoCEv2 over IPv4.
const IP: usize = 14;
const SOURCE: usize = 26;
const DESTINATION_ADDRESS: usize = 30;
const UDP_DESTINATION: usize = 36;
const BTH: usize = 42;
const P_KEY: usize = BTH + 2;

/// An octet of a frame, the bits that change, and what is computed again.
type Row = (&'static str, Change, Repair);
/// Place from the start, or from the end if negative, and the bits that are flipped.
type Change = (isize, u8);

/// What is right again after the change.
#[derive(Clone, Copy)]
enum Repair {
    Nothing,
    Icrc,
    HeaderAndIcrc,
}
use Repair::{HeaderAndIcrc, Icrc, Nothing};

static ICRC: [Row; 4] = [
    ("the last octet of the ICRC", (-1, 0x80), Nothing),
    ("the first octet of the ICRC", (-4, 0x01), Nothing),
    ("a bit of the payload", (-8, 0x10), Nothing),
    ("the solicited event", (BTH as isize + 1, 0x80), Nothing),
];
static VERSIONS: [Row; 4] = [
    ("version 1", (BTH as isize + 1, 0x01), Icrc),
    ("version 2", (BTH as isize + 1, 0x02), Icrc),
    ("version 8", (BTH as isize + 1, 0x08), Icrc),
    ("version 15", (BTH as isize + 1, 0x0f), Icrc),
];
static PARTITIONS: [Row; 3] = [
    ("P_Key fffe", (P_KEY as isize + 1, 0x01), Icrc),
    ("P_Key bfff", (P_KEY as isize, 0x40), Icrc),
    ("P_Key ff00", (P_KEY as isize + 1, 0xff), Icrc),
];
static RESERVED: [Row; 5] = [
    ("opcode 15", (BTH as isize, 0x04 ^ 0x15), Icrc),
    ("opcode 18", (BTH as isize, 0x04 ^ 0x18), Icrc),
    ("opcode 1f", (BTH as isize, 0x04 ^ 0x1f), Icrc),
    ("opcode c4", (BTH as isize, 0x04 ^ 0xc4), Icrc),
    ("opcode ff", (BTH as isize, 0x04 ^ 0xff), Icrc),
];
static HEADER_CHECKSUM: [Row; 2] = [
    ("the IPv4 checksum", (IP as isize + 10, 0x01), Nothing),
    ("its low octet", (IP as isize + 11, 0x80), Nothing),
];
static DESTINATION: [Row; 1] =
    [("another IPv4 address", (DESTINATION_ADDRESS as isize + 3, 0x40), HeaderAndIcrc)];
static OTHER_SERVICE: [Row; 2] =
    [("UC SEND Only", (BTH as isize, 0x20), Icrc), ("XRC SEND Only", (BTH as isize, 0xa0), Icrc)];
static OTHER_PORT: [Row; 1] = [("UDP port 4790", (UDP_DESTINATION as isize + 1, 0x01), Icrc)];

/// Computes the ICRC again, where the frame still is RoCE.
pub(super) fn repair_icrc(octets: &mut BytesMut) {
    if let Ok(Some(layout)) = Layout::find(octets) {
        let right = icrc(octets, &layout).to_le_bytes();
        let at = layout.icrc_at();
        octets[at..at + 4].copy_from_slice(&right);
    }
}

fn spoilt(octets: &BytesMut, (place, bits): Change, repair: Repair) -> BytesMut {
    let mut wrong = octets.clone();
    let at = if place < 0 { wrong.len() - place.unsigned_abs() } else { place as usize };
    wrong[at] ^= bits;
    match repair {
        Nothing => {}
        Icrc => repair_icrc(&mut wrong),
        HeaderAndIcrc => {
            let right = ipv4_header(&wrong[IP..IP + 20]).to_be_bytes();
            wrong[IP + 10..IP + 12].copy_from_slice(&right);
            repair_icrc(&mut wrong);
        }
    }
    wrong
}

/// A pair whose next SEND is taken.
fn ready(nic: &mut Nic<'_>) -> Check<Pair> {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 4)?;
    Ok(pair)
}

/// The device takes the first SEND of the pair, once.
fn still_takes(nic: &mut Nic<'_>, pair: &Pair) -> Check<()> {
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let (syndrome, psn, _) =
        nic.answer(pair, mark).map_err(|fault| fault.of("then a good SEND"))?;
    let is_ack = matches!(syndrome, Syndrome::Ack { .. }) && psn == pair.in_psn(0);
    must!(is_ack, "then a good SEND is answered by {syndrome:?} of PSN {:06x}", psn.get());
    let received = nic.received(pair, 1)?;
    must!(received.len() == 1, "{} receives complete, not 1", received.len());
    Ok(())
}

fn is_ignored(nic: &mut Nic<'_>, pair: &Pair, what: &str, octets: &[u8]) -> Check<()> {
    let mark = nic.mark();
    nic.send_octets(octets)?;
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "{what}: it is answered by {}", names(&got));
    let received = nic.received(pair, 0)?;
    must!(received.is_empty(), "{what}: it is delivered");
    Ok(())
}

fn ignored(nic: &mut Nic<'_>, rows: &[Row]) -> Check {
    let pair = ready(nic)?;
    let good = nic.frame(&pair.message(0)).octets;
    let mut count = 0;
    for (what, change, repair) in rows {
        is_ignored(nic, &pair, what, &spoilt(&good, *change, *repair))?;
        count += 1;
    }
    still_takes(nic, &pair)?;
    Ok(format!("{count} wrong packets draw nothing, the right one is taken"))
}

fn unknown_pair(nic: &mut Nic<'_>) -> Check {
    let pair = ready(nic)?;
    for bits in [0x80_0000, 0x40_0000, 0x00_8000] {
        let mut wrong = pair.message(0);
        wrong.bth.destination = QueuePairNumber::truncate(pair.number.get() ^ bits);
        let octets = nic.frame(&wrong).octets;
        is_ignored(
            nic,
            &pair,
            &format!("queue pair {:06x}", wrong.bth.destination.get()),
            &octets,
        )?;
    }
    still_takes(nic, &pair)?;
    Ok("three numbers without a queue pair draw nothing".to_owned())
}

/// A pad count beyond the payload: the packet is dropped, or refused; it is never delivered.
fn pad_beyond(nic: &mut Nic<'_>) -> Check {
    let mut answers = Vec::new();
    for pad in 1..4u8 {
        let pair = ready(nic)?;
        let mut octets = nic.frame(&pair.packet(Opcode::RC_SEND_ONLY, 0, &[])).octets;
        octets[BTH + 1] |= pad << 4;
        repair_icrc(&mut octets);
        let mark = nic.mark();
        nic.send_octets(&octets)?;
        let got = nic.packets(mark, 0)?;
        let received = nic.received(&pair, 0)?;
        must!(received.is_empty(), "a pad of {pad} behind no payload is delivered: {received:?}");
        answers.push(names(&got));
    }
    let pair = ready(nic)?;
    still_takes(nic, &pair)?;
    Ok(format!("not delivered; answers: {}", answers.join("; ")))
}

fn truncated(nic: &mut Nic<'_>) -> Check {
    let pair = ready(nic)?;
    let good = nic.frame(&pair.message(0)).octets;
    let mark = nic.mark();
    for length in 14..good.len() {
        nic.send_octets(&good[..length])?;
    }
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "a truncated packet is answered by {}", names(&got));
    still_takes(nic, &pair)?;
    Ok(format!("{} truncated packets draw nothing", good.len() - 14))
}

fn other_source(nic: &mut Nic<'_>) -> Check {
    let pair = ready(nic)?;
    let good = nic.frame(&pair.message(0)).octets;
    let wrong = spoilt(&good, (SOURCE as isize + 3, 0x40), HeaderAndIcrc);
    let mark = nic.mark();
    nic.send_octets(&wrong)?;
    let got = nic.packets(mark, 0)?;
    let received = nic.received(&pair, 0)?;
    if !received.is_empty() || !got.is_empty() {
        return Err(Fault::deviation(format!(
            "from another address: {} delivered, answered by {}",
            received.len(),
            names(&got)
        )));
    }
    still_takes(nic, &pair)?;
    Ok("a packet of another source draws nothing".to_owned())
}
