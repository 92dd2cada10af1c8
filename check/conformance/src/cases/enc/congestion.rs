//! ENC-10, ENC-11: the CNM field by field, and where a CN-TAG stands.

use crate::prelude::*;
use crate::samples::{hex, networks, roce_builder, roce_octets};
use proto::ids::VlanId;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, EthernetHeader, MacAddress, Preface, VlanTag, preface,
};
use proto::wire::infiniband::Opcode;
use proto::wire::project::ProjectTypes;
use proto::wire::roce::PacketBuilder;

const STATION: MacAddress = MacAddress::new([0x02, 0, 0, 0, 0, 0x05]);
const PORT: MacAddress = MacAddress::new([0x02, 0, 0x03, 0, 0, 0x09]);
const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
const VLAN: VlanTag = VlanTag {
    priority: Priority::truncate(3),
    drop_eligible: false,
    id: VlanId::truncate(100),
    ethertype: 0,
};

fn sample() -> Cnm {
    Cnm {
        version: 0,
        reserved: 0,
        quantized_feedback: 0x26,
        cpid: 0x0200_0300_0009_0003,
        q_offset: -2,
        q_delta: 0x0102,
        encapsulated_priority: Priority::truncate(3),
        encapsulated_reserved: 0,
        encapsulated_destination: MacAddress::new([0x02, 0, 0, 0, 0, 0x01]),
        msdu_length: 4,
    }
}

/// What [`sample`] should be, behind EtherType 22E7.
const SAMPLE: [u8; 24] = [
    0x00, 0x26, 0x02, 0x00, 0x03, 0x00, 0x00, 0x09, 0x00, 0x03, 0xff, 0xfe, 0x01, 0x02, 0x60, 0x00,
    0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x04,
];

/// ENC-10: known values octet for octet in a whole frame, then every value of each narrow field.
pub fn message_layout(_: Level) -> Finding {
    let frame = [&header(0x22e7).to_octets()[..], &SAMPLE, &[0xd0, 0xd1, 0xd2, 0xd3]].concat();
    let written = [&header(0x22e7).to_octets()[..], &sample().to_octets(), &frame[38..]].concat();
    same("a CNM", hex(&written), hex(&frame))?;
    same("its EtherType", hex(&frame[12..14]), hex(&[0x22, 0xe7]))?;
    for end in 14..frame.len() {
        ensure!(Cnm::parse_message(&frame[14..end]).is_err(), "{end} octets are read");
    }
    let read = Cnm::parse_message(&frame[14..])?;
    ensure!(read == (sample(), &frame[38..]), "{read:?}");
    let values = fields()?;
    let longest = [&Cnm { msdu_length: 64, ..sample() }.to_octets()[..], &[0; 64]].concat();
    same("octets of the longest", longest.len(), 88)?;
    Cnm::parse_message(&longest)?;
    Ok(format!("24 to 88 octets; {values} values of fields where they belong"))
}

fn header(ethertype: u16) -> EthernetHeader {
    Envelope::untagged(STATION, PORT, ethertype).header
}

/// Each field alone, at the place that the clause gives it; how many values there were.
fn fields() -> Result<usize> {
    let mut values = 0;
    let mut check = |cnm: Cnm, at: usize, octets: &[u8]| {
        let mut expected = SAMPLE;
        expected[at..at + octets.len()].copy_from_slice(octets);
        let written = cnm.to_octets();
        same(format!("{cnm:?}"), hex(&written), hex(&expected))?;
        ensure!(Cnm::parse(&written) == Ok(cnm), "{cnm:?} is read otherwise");
        values += 1;
        Ok::<(), Failure>(())
    };
    for feedback in 0..64 {
        check(Cnm { quantized_feedback: feedback, ..sample() }, 1, &[feedback])?;
    }
    for reserved in 0..64 {
        let octets = (u16::from(reserved) << 6 | 0x26).to_be_bytes();
        check(Cnm { reserved, ..sample() }, 0, &octets)?;
    }
    for version in 0..16 {
        check(Cnm { version, ..sample() }, 0, &[version << 4])?;
    }
    for number in i16::MIN..=i16::MAX {
        check(Cnm { q_offset: number, ..sample() }, 10, &number.to_be_bytes())?;
        check(Cnm { q_delta: number, ..sample() }, 12, &number.to_be_bytes())?;
    }
    for priority in 0..8 {
        let encapsulated_priority = Priority::truncate(priority);
        check(Cnm { encapsulated_priority, ..sample() }, 14, &[priority << 5])?;
    }
    for msdu_length in 0..=64_u16 {
        check(Cnm { msdu_length, ..sample() }, 22, &msdu_length.to_be_bytes())?;
    }
    Ok(values)
}

/// ENC-11: VLAN tag, 22E9, flow id, the original type; in frames of every network and out again.
pub fn tag_position(_: Level) -> Finding {
    let tag = CongestionTag::Cn(CnTag { flow_id: 7, ethertype: 0 });
    let mut frames = 0;
    for (_, network) in networks() {
        let plain = roce_builder(Opcode::RC_SEND_ONLY, network);
        let builder = PacketBuilder { tag: Some(VLAN), ..plain };
        let plain = roce_octets(&builder, &[0x5a; 24]);
        let mut tagged = BytesMut::from(&plain[..]);
        preface::insert_tag(&mut tagged, tag, &TYPES)?;
        let expected = [&plain[..16], &[0x22, 0xe9, 0, 7], &plain[16..]].concat();
        same("a tagged frame", hex(&tagged), hex(&expected))?;
        let flow = |octets: &[u8]| Preface::parse(octets, &TYPES).map(|preface| preface.flow_id());
        ensure!(flow(&tagged) == Ok(7), "its flow id is not 7");
        ensure!(flow(&plain) == Ok(0), "without the tag it is not flow 0");
        let [before, after] = [&plain[..], &tagged].map(|octets| {
            classify(FrameKind::Ethernet, octets)
                .map(|headers| (headers.queue_pair, headers.lane.get()))
        });
        ensure!(before.is_ok() && before == after, "{after:?}, {before:?} without");
        let removed = preface::remove_tag(&mut tagged, &TYPES);
        ensure!(matches!(removed, Ok(Some(_))), "{removed:?} is taken out");
        same("the frame without its tag", hex(&tagged), hex(&plain))?;
        frames += 1;
    }
    Ok(format!("{frames} frames: 8100, 22E9, flow id, type; without a tag the flow is 0"))
}
