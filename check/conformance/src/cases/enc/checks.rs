//! ENC-01, ENC-02, ENC-05: what the two CRCs of a packet are, and what they cover.

use crate::prelude::*;
use crate::samples::{
    LOCAL, LOCAL_ICRC, LOCAL_VCRC, blind_bits, builder, crc16, crc32, hex, local, octet, octets,
};
use proto::wire::infiniband::{Opcode, Packet, PacketBuilder, crc};
use std::ops::Range;

/// ENC-01: the ICRC of the standard's sample, and the same packet encoded from its fields.
pub fn icrc_of_the_sample(_: Level) -> Finding {
    let packet = local();
    let icrc = crc::icrc(&packet).ok_or("no place for an ICRC was seen")?;
    same("ICRC", hex(&icrc.to_le_bytes()), hex(&LOCAL_ICRC))?;
    let mut masked = LOCAL;
    masked[0] |= 0xf0;
    masked[12] = 0xff;
    same("CRC-32 of the packet with VL and Resv8a as ones", crc32(&masked), icrc)?;
    crc::verify_icrc(&packet)?;

    let parsed = Packet::parse(&packet)?;
    let bth = parsed.bth.ok_or("no BTH was seen")?;
    let builder = PacketBuilder {
        virtual_lane: parsed.lrh.virtual_lane,
        service_level: parsed.lrh.service_level,
        dlid: parsed.lrh.dlid,
        slid: parsed.lrh.slid,
        extended: parsed.extended,
        ..PacketBuilder::new(bth)
    };
    same("the packet encoded anew", hex(&octets(&builder, parsed.payload)), hex(&packet))?;
    Ok(format!("{} on the wire; encoded from its fields, all 58 octets agree", hex(&LOCAL_ICRC)))
}

/// ENC-02: the VCRC of the same sample.
pub fn vcrc_of_the_sample(_: Level) -> Finding {
    let packet = local();
    let vcrc = crc::vcrc(&packet);
    same("VCRC", format!("{vcrc:#06x}"), "0xfa45")?;
    same("VCRC bit by bit", crc16(&packet[..56]), vcrc)?;
    same("VCRC over 123456789", crc16(b"123456789"), 0x0a3d)?;
    let mut spoiled = packet.clone();
    spoiled[56..].fill(0);
    crc::refresh_vcrc(&mut spoiled);
    same("VCRC octets as written", hex(&spoiled[56..]), hex(&LOCAL_VCRC))?;
    crc::verify_vcrc(&packet)?;
    Ok(format!("{vcrc:#06x}, sent as {}", hex(&LOCAL_VCRC)))
}

/// What may change on the way of a packet without GRH: LRH.VL and the octet of FECN and BECN.
fn variant_local() -> Vec<Range<usize>> {
    vec![0..4, octet(12)]
}

/// With a GRH: the whole LRH (its LNH aside: then it would be another kind of packet), TClass and
/// FlowLabel, HopLmt, and the octet of FECN and BECN.
fn variant_global() -> Vec<Range<usize>> {
    vec![0..14, 16..64, 68..96, octet(15), octet(52)]
}

/// ENC-05: every single bit of a packet of each kind flipped in turn.
pub fn icrc_is_blind_to_the_variant_fields(_: Level) -> Finding {
    let write = |global| octets(&builder(Opcode::RC_WRITE_ONLY, global), &[0x5a; 30]);
    let native = |name, packet: &[u8], variant: &[_]| {
        blind_bits(name, packet, (packet.len() - 6) * 8, variant, crc::icrc)
    };
    let in_local = native("local", &write(false), &variant_local())?;
    let in_global = native("global", &write(true), &variant_global())?;
    let in_sample = native("sample", &local(), &variant_local())?;
    let on_ethernet = super::roce::blind_bits_on_ethernet()?;
    Ok(format!(
        "blind bits as they must be: local {in_local}, global {in_global}, sample {in_sample}, \
         {on_ethernet}"
    ))
}
