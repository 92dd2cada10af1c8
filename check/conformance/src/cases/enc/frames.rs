//! The Ethernet half of ENC-15 and ENC-16: RoCE, PAUSE and PFC there and back, cut, and of no sense.

use crate::prelude::*;
use crate::samples::{fill, names_a_layer, networks, random_builder, roce_builder, roce_octets};
use proto::ids::VlanId;
use proto::random::Random;
use proto::wire::classify::{PriorityMap, classify, classify_ethernet};
use proto::wire::ethernet::{MacAddress, MacControl, Pause, Pfc, VlanTag, crc};
use proto::wire::infiniband::Opcode;
use proto::wire::internet::mark_congestion;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{Layout, Packet, PacketBuilder};

/// One random RoCE frame, there and back; whether a damaged copy was accepted too.
pub fn roce_comes_back(random: &mut Random) -> Result<usize> {
    let (_, network) = networks()[random.below(3) as usize];
    let native = random_builder(random, false);
    let tag = (random.below(2) == 0).then(|| VlanTag {
        priority: Priority::truncate(random.next_u64() as u8),
        drop_eligible: random.below(2) == 0,
        id: VlanId::truncate(random.next_u64() as u16),
        ethertype: 0,
    });
    let builder = PacketBuilder {
        tag,
        extended: native.extended,
        bth: native.bth,
        ..roce_builder(native.bth.opcode, network)
    };
    let mut payload = [0; 256];
    let size = random.below(payload.len() as u64) as usize;
    fill(random, &mut payload[..size]);
    let mut frame = roce_octets(&builder, &payload[..size]);
    let packet = read(&frame)?;
    let is_same = packet.transport.payload == &payload[..size]
        && packet.transport.extended == builder.extended
        && packet.network.network() == builder.network.network()
        && packet.ethernet.tag.map(|tag| (tag.priority, tag.drop_eligible, tag.id))
            == tag.map(|tag| (tag.priority, tag.drop_eligible, tag.id));
    ensure!(is_same, "{builder:?} comes back as {packet:?}");
    verify_icrc(&frame)?;
    verify_checksums(&frame)?;
    written_as_read(&frame)?;
    for _ in 0..=random.below(3) {
        let index = random.below(frame.len() as u64) as usize;
        frame[index] ^= random.next_u64() as u8;
    }
    match Packet::parse(&frame) {
        Ok(Some(_)) => written_as_read(&frame).map(|()| 1),
        Ok(None) | Err(_) => Ok(0),
    }
}

fn read(frame: &[u8]) -> Result<Packet<'_>> {
    let packet = Packet::parse(frame).map_err(|error| format!("{frame:02x?}: {error}"))?;
    packet.ok_or_else(|| Failure::Failed(format!("{frame:02x?}: no RoCE was seen")))
}

fn written_as_read(frame: &[u8]) -> Result<()> {
    let written = read(frame)?.to_octets();
    ensure!(written == frame, "{frame:02x?} is written as {:02x?}", &written[..]);
    Ok(())
}

/// One random PAUSE or PFC frame, there and back.
pub fn control_comes_back(random: &mut Random) -> Result<()> {
    let mut octets = [0; Pfc::LEN];
    fill(random, &mut octets);
    let control = match random.below(2) {
        0 => MacControl::Pause(Pause::parse(&octets)?),
        _ => MacControl::Pfc(Pfc::parse(&octets)?),
    };
    let frame = control.to_octets(MacAddress::from_number(random.next_u64()));
    let read = MacControl::parse(&frame)?;
    ensure!(read == control, "{control:?} comes back as {read:?}");
    Ok(())
}

/// Every prefix of a RoCE frame of each kind, of PAUSE and of PFC; how many were refused.
pub fn truncated_frames() -> Result<usize> {
    let mut refused = 0;
    for opcode in [Opcode::RC_SEND_ONLY, Opcode::RC_WRITE_ONLY_IMMEDIATE, Opcode::ROCEV2_CNP] {
        for (name, network) in networks() {
            let frame = roce_octets(&roce_builder(opcode, network), &[7; 16]);
            for length in 0..frame.len() {
                use_every_reader(&frame[..length]);
                let Err(error) = Packet::parse(&frame[..length]) else {
                    bail!("{length} of {} octets of {name} are accepted", frame.len());
                };
                names_a_layer(&error)?;
                refused += 1;
            }
            let longer = [&frame[..], &[0xee; 64]].concat();
            for length in frame.len()..=longer.len() {
                // What follows fills the frame.
                written_as_read(&longer[..length])?;
                use_every_reader(&longer[..length]);
            }
        }
    }
    let port = MacAddress::from_number(1);
    for (control, least) in [
        (MacControl::Pause(Pause { time: 9 }), 18),
        (MacControl::Pfc(Pfc::default().with(Priority::truncate(3), 9)), 34),
    ] {
        let frame = control.to_octets(port);
        for length in 0..frame.len() {
            use_every_reader(&frame[..length]);
            let accepted = MacControl::parse(&frame[..length]).is_ok();
            ensure!(accepted == (length >= least), "{length} octets of {control:?}");
        }
        refused += least;
    }
    Ok(refused)
}

/// Octets of no sense, behind an EtherType that gives them one.
pub fn read_nonsense(random: &mut Random) {
    let mut octets = vec![0; random.below(200) as usize];
    fill(random, &mut octets);
    use_every_reader(&octets);
    let kinds = [(0x0800u16, 0x45), (0x86dd, 0x60), (0x8915, 0x60), (0x8808, 0x01), (0x8100, 0x60)];
    if octets.len() > 14 {
        let (kind, first) = kinds[random.below(kinds.len() as u64) as usize];
        octets[12..14].copy_from_slice(&kind.to_be_bytes());
        octets[14] = first;
        use_every_reader(&octets);
    }
}

/// Everything that reads an Ethernet frame of unknown content reads this one.
fn use_every_reader(octets: &[u8]) {
    if let Ok(Some(packet)) = Packet::parse(octets) {
        let _ = format!("{packet:?}{:?}", packet.to_octets());
    }
    let _ = (classify(FrameKind::Ethernet, octets), Layout::find(octets));
    let _ = (classify_ethernet(octets, &PriorityMap::BY_DSCP), MacControl::parse(octets));
    let _ = (verify_icrc(octets), verify_checksums(octets), crc::without_fcs(octets));
    mark_congestion(&mut octets.to_vec());
}
