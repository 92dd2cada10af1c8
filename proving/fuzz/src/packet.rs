//! A data packet: emit reproduces every packet that parses, and other octets cause no panic.

use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::ids::VirtualLane;
use proto::wire::classify::classify;
use proto::wire::infiniband::crc::{self, refresh_both};
use proto::wire::infiniband::{Packet, PacketBuilder, relabel};

/// The first octet selects repairs of the others: bit 0 PktLen, bit 1 GRH PayLen, bit 2 both CRCs.
pub fn check(input: &[u8]) {
    let Some((mend, octets)) = input.split_first() else { return };
    let mut octets = octets.to_vec();
    if mend & 1 != 0 && octets.len() > 8 {
        let words = (octets.len() - 2) / 4;
        octets.truncate(words * 4 + 2);
        octets[4] = octets[4] & 0xf8 | (words >> 8) as u8 & 7;
        octets[5] = words as u8;
    }
    if mend & 2 != 0 && octets.len() > 50 {
        let length = (octets.len() - 50) as u16;
        octets[12..14].copy_from_slice(&length.to_be_bytes());
    }
    if mend & 4 != 0 {
        refresh_both(&mut octets);
        assert_eq!(crc::verify_vcrc(&octets).is_ok(), octets.len() >= 2);
    }
    taken_apart(&octets);
    relabelled(octets);
}

fn taken_apart(octets: &[u8]) {
    let classified = classify(FrameKind::Infiniband, octets);
    // The checks must not panic, whatever their result.
    let _ = (crc::verify_icrc(octets), crc::verify_vcrc(octets), crc::verify_lpcrc(octets));
    let Ok(packet) = Packet::parse(octets) else { return };
    assert_eq!(packet.octets_len(), octets.len());
    assert_eq!(packet.to_octets(), octets, "emit reproduces the parsed octets");
    let headers = classified.expect("a packet that parses can be classified");
    assert_eq!(headers.size.get(), octets.len() as u64);
    let Some(bth) = packet.bth else { return };
    assert_eq!(headers.payload.get(), packet.payload.len() as u64);
    assert_eq!((headers.psn, headers.fecn), (bth.psn.get(), bth.fecn));
    let builder = PacketBuilder::of(&packet).expect("the packet has a BTH");
    let mut built = BytesMut::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(packet.payload);
    builder.emit(&mut built, packet.payload.len(), fill).expect("a parsed packet can be emitted");
    assert_eq!((crc::verify_icrc(&built), crc::verify_vcrc(&built)), (Ok(()), Ok(())));
    let again = Packet::parse(&built).expect("a built packet parses");
    assert_eq!((again.payload, again.extended), (packet.payload, packet.extended));
}

/// A switch's changes affect neither the ICRC nor the verdict on the VCRC.
fn relabelled(octets: Vec<u8>) {
    if Packet::parse(&octets).is_err() {
        return;
    }
    let before = (crc::verify_icrc(&octets).is_ok(), crc::verify_vcrc(&octets).is_ok());
    let mut after = octets;
    relabel::relabel(&mut after, VirtualLane::truncate(9), true);
    let after = (crc::verify_icrc(&after).is_ok(), crc::verify_vcrc(&after).is_ok());
    assert_eq!(before, after);
}
