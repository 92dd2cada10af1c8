//! ENC-15, ENC-16: what is written is read back, and no octets make a reader panic.

use super::frames;
use crate::prelude::*;
use crate::samples::{builder, fill, names_a_layer, octets, random_builder};
use proto::random::Random;
use proto::wire::error::ParseError;
use proto::wire::infiniband::{
    Bth, FlowControlOp, FlowControlPacket, Grh, LinkNextHeader, Lrh, Opcode, Packet, crc, set_fecn,
    set_virtual_lane,
};

/// Frames of each type.
const FRAMES: usize = 100_000;

/// ENC-15: decode(encode(x)) = x, and encode(decode(b)) = b for every accepted b.
pub fn round_trip(_: Level) -> Finding {
    let mut random = Random::stream(15, "ENC-15", "frames");
    let mut accepted = 0;
    for _ in 0..FRAMES {
        accepted += packet_comes_back(&mut random, false)?;
        accepted += packet_comes_back(&mut random, true)?;
        accepted += raw_packet_comes_back(&mut random)?;
        link_packet_comes_back(&mut random)?;
        accepted += frames::roce_comes_back(&mut random)?;
        frames::control_comes_back(&mut random)?;
    }
    Ok(format!("{FRAMES} of each type; {accepted} damaged ones were packets too and came back"))
}

/// One random packet, there and back; whether a damaged copy was accepted too.
fn packet_comes_back(random: &mut Random, global: bool) -> Result<usize> {
    let builder = random_builder(random, global);
    let mut payload = [0; 256];
    let size = random.below(payload.len() as u64) as usize;
    fill(random, &mut payload[..size]);
    let written = octets(&builder, &payload[..size]);
    let packet = read(&written)?;
    let pad_count = packet.bth.map_or(0, |bth| bth.pad_count);
    let grh = builder
        .grh
        .map(|grh| Grh { payload_length: (written.len() - Lrh::LEN - Grh::LEN - 2) as u16, ..grh });
    let same = packet.lrh.virtual_lane == builder.virtual_lane
        && packet.lrh.service_level == builder.service_level
        && packet.lrh.dlid == builder.dlid
        && packet.lrh.slid == builder.slid
        && packet.grh == grh
        && packet.bth == Some(Bth { pad_count, ..builder.bth })
        && packet.extended == builder.extended
        && packet.payload == &payload[..size];
    ensure!(same, "{builder:?} comes back as {packet:?}");
    crc::verify_icrc(&written)?;
    crc::verify_vcrc(&written)?;
    written_as_read(&written)?;
    damaged_comes_back(random, written)
}

/// Up to three octets changed, anywhere: if that is a packet, it is written as it was read.
fn damaged_comes_back(random: &mut Random, mut octets: Vec<u8>) -> Result<usize> {
    for _ in 0..=random.below(3) {
        let index = random.below(octets.len() as u64) as usize;
        octets[index] ^= random.next_u64() as u8;
    }
    if Packet::parse(&octets).is_err() {
        return Ok(0);
    }
    written_as_read(&octets)?;
    Ok(1)
}

fn read(octets: &[u8]) -> Result<Packet<'_>> {
    Packet::parse(octets).map_err(|error| Failure::Failed(format!("{octets:02x?}: {error}")))
}

fn written_as_read(octets: &[u8]) -> Result<()> {
    let written = read(octets)?.to_octets();
    ensure!(written == octets, "{octets:02x?} is written as {:02x?}", &written[..]);
    Ok(())
}

fn raw_packet(random: &mut Random) -> Vec<u8> {
    let words = 5 + random.below(40) as u16;
    let mut octets = vec![0; usize::from(words) * 4 + 2];
    fill(random, &mut octets);
    let lrh = Lrh {
        next_header: LinkNextHeader::from_bits(octets[1] & 1),
        version: 0,
        packet_length: words,
        ..Lrh::parse(&octets).expect("more than eight octets")
    };
    lrh.emit(&mut octets);
    crc::refresh_vcrc(&mut octets);
    octets
}

fn raw_packet_comes_back(random: &mut Random) -> Result<usize> {
    let octets = raw_packet(random);
    let packet = read(&octets)?;
    let is_raw = packet.bth.is_none() && packet.icrc.is_none();
    ensure!(is_raw && packet.payload == &octets[8..octets.len() - 2], "it is read as {packet:?}");
    written_as_read(&octets)?;
    damaged_comes_back(random, octets)
}

fn link_packet_comes_back(random: &mut Random) -> Result<()> {
    let number = random.next_u64();
    let packet = FlowControlPacket {
        op: FlowControlOp::from_bits(number as u8 & 0xf),
        fctbs: (number >> 8) as u16 & 0xfff,
        virtual_lane: VirtualLane::truncate((number >> 24) as u8 & 0xf),
        fccl: (number >> 32) as u16 & 0xfff,
    };
    let octets = packet.to_octets();
    let read = FlowControlPacket::parse(&octets)?;
    ensure!(read == packet, "{packet:?} comes back as {read:?}");
    Ok(())
}

/// ENC-16: every prefix, every surplus, and octets of no sense at all.
pub fn truncations_are_errors(_: Level) -> Finding {
    let mut refused = 0;
    for opcode in Opcode::ALL {
        for global in [false, true] {
            let whole = octets(&builder(*opcode, global), &[7; 13]);
            refused += cut_and_lengthened(&whole)?;
            cut_with_matching_length(&whole)?;
        }
    }
    let mut random = Random::stream(16, "ENC-16", "octets");
    let raw = raw_packet(&mut random);
    refused += cut_and_lengthened(&raw)?;
    cut_with_matching_length(&raw)?;
    refused += cut_link_packet()? + frames::truncated_frames()?;
    for _ in 0..FRAMES {
        let mut octets = vec![0; random.below(200) as usize];
        fill(&mut random, &mut octets);
        use_every_reader(&octets);
        octets.truncate(octets.len() / 4 * 4 + 2);
        claim_length(&mut octets);
        use_every_reader(&octets);
        frames::read_nonsense(&mut random);
    }
    Ok(format!("{refused} prefixes and lengthened frames refused; {} random ones read", 4 * FRAMES))
}

/// All prefixes, and one to 64 octets too many.
fn cut_and_lengthened(whole: &[u8]) -> Result<usize> {
    let longer = [whole, &[0xee; 64]].concat();
    for length in (0..longer.len() + 1).filter(|length| *length != whole.len()) {
        let octets = &longer[..length];
        use_every_reader(octets);
        for result in [Packet::parse(octets).map(drop), classify_packet(octets)] {
            let Err(error) = result else {
                bail!("{length} of {} octets are accepted", whole.len());
            };
            names_a_layer(&error)?;
        }
    }
    Ok(longer.len())
}

fn classify_packet(octets: &[u8]) -> Result<(), ParseError> {
    classify(FrameKind::Infiniband, octets).map(drop)
}

/// Sets PktLen to the length that is there, up to whole words and the VCRC.
fn claim_length(octets: &mut [u8]) {
    if let Some(words) = octets.len().checked_sub(2).filter(|covered| *covered >= 8) {
        octets[4] = octets[4] & 0xf8 | ((words / 4) >> 8) as u8 & 7;
        octets[5] = (words / 4) as u8;
    }
}

/// Cut, with a PktLen that agrees: the headers behind the LRH must notice by themselves.
fn cut_with_matching_length(whole: &[u8]) -> Result<()> {
    for length in (10..whole.len()).step_by(4) {
        let mut octets = whole[..length / 4 * 4 + 2].to_vec();
        claim_length(&mut octets);
        use_every_reader(&octets);
        match Packet::parse(&octets) {
            Ok(_) => written_as_read(&octets)?,
            Err(error) => names_a_layer(&error)?,
        }
    }
    Ok(())
}

fn cut_link_packet() -> Result<usize> {
    let octets = [&[0x01, 0x23, 0x45, 0x67][..], &[0; 66]].concat();
    for length in (0..octets.len() + 1).filter(|length| *length != FlowControlPacket::LEN) {
        let Err(error) = FlowControlPacket::parse(&octets[..length]) else {
            bail!("{length} octets of a flow-control packet are accepted");
        };
        names_a_layer(&error)?;
    }
    Ok(octets.len())
}

/// Everything that reads a frame of unknown content reads this one; what it finds is of no interest.
fn use_every_reader(octets: &[u8]) {
    if let Ok(packet) = Packet::parse(octets) {
        let _ = format!("{packet:?}{:?}", packet.to_octets());
    }
    let _ = (classify_packet(octets), FlowControlPacket::parse(octets));
    let _ = (crc::icrc(octets), crc::vcrc(octets), crc::lpcrc(octets));
    let _ = (crc::verify_icrc(octets), crc::verify_vcrc(octets), crc::verify_lpcrc(octets));
    let mut copy = octets.to_vec();
    set_virtual_lane(&mut copy, VirtualLane::truncate(3));
    set_fecn(&mut copy);
    crc::refresh_both(&mut copy);
}
