//! Frames of congestion notification that tests send, and what they read off those that devices send.

use super::ethernet::{plain, tag};
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Priority};
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, MacAddress, Preface, ethertype, plan, preface,
};
use proto::wire::project::ProjectTypes;

/// The priority of messages by habit.
pub const CNM: u8 = 6;

/// The congestion notification priority of cases.
pub const CNPV: u8 = 3;

/// A message as read off the line.
#[derive(Clone, Debug)]
pub struct Message {
    /// What stands before it.
    pub preface: Preface,
    /// Its fields.
    pub cnm: Cnm,
}

impl Message {
    /// The message in `frame`, if it is one.
    ///
    /// # Errors
    /// If it ends too soon.
    pub fn of(frame: &Frame) -> Result<Option<Message>, String> {
        let octets = &frame.octets;
        let preface = preface(frame)?;
        if preface.ethertype() != ethertype::CNM {
            return Ok(None);
        }
        let read = Cnm::parse_message(&octets[preface.octets_len()..]);
        let (cnm, _) = read.map_err(|error| error.to_string())?;
        Ok(Some(Message { preface, cnm }))
    }

    /// The messages among `frames`.
    ///
    /// # Errors
    /// If one ends too soon.
    pub fn among<'a>(frames: impl Iterator<Item = &'a Frame>) -> Result<Vec<Message>, String> {
        frames.filter_map(|frame| Message::of(frame).transpose()).collect()
    }
}

fn preface(frame: &Frame) -> Result<Preface, String> {
    let preface = Preface::parse(&frame.octets, &ProjectTypes::DEFAULT);
    preface.map_err(|error| error.to_string())
}

/// VLAN priority and CN-TAG of a frame that is not a message.
///
/// # Errors
/// If it ends too soon.
pub fn marks(frame: &Frame) -> Result<Option<(u8, Option<u16>)>, String> {
    let preface = preface(frame)?;
    let pcp = preface.envelope.tag.map_or(0, |tag| tag.priority.get());
    let flow = preface.tag.map(|_| preface.flow_id());
    Ok((preface.ethertype() != ethertype::CNM).then_some((pcp, flow)))
}

/// `frame` with the tag of this flow.
///
/// # Panics
/// If it ends within its envelope.
pub fn with_flow(mut frame: Frame, flow_id: u16) -> Frame {
    let tag = CongestionTag::Cn(CnTag { flow_id, ethertype: 0 });
    let inserted = preface::insert_tag(&mut frame.octets, tag, &ProjectTypes::DEFAULT);
    inserted.expect("a case tags whole frames");
    frame
}

/// A frame that is not IP, of `length` octets, of adapter `from` on priority `pcp`.
pub fn sent(from: u16, to: u8, pcp: u8, length: usize) -> Frame {
    plain(from, to.into(), Some(tag(pcp)), length)
}

/// A frame of `length` octets from adapter `from` to adapter `to` on priority `pcp` that says what a
/// congestion point does: here as data, or as if it came from one.
pub fn message(cnm: Cnm, (from, to): (MacAddress, u16), pcp: u8, length: usize) -> Frame {
    let to = plan::mac(Lid::new(to));
    let envelope = Envelope::untagged(to, from, ethertype::CNM).tagged(tag(pcp));
    let mut octets = BytesMut::zeroed(length);
    envelope.emit(&mut octets);
    let at = envelope.octets_len();
    octets[at..at + Cnm::LEN].copy_from_slice(&cnm.to_octets());
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// A congestion point at the switch with this address is of the opinion that adapter `to` is sent too
/// much, by a quarter of the rate.
pub fn opinion(switch: MacAddress, to: u16) -> Cnm {
    Cnm {
        quantized_feedback: 32,
        cpid: switch.number() << 16 | u64::from(CNPV),
        encapsulated_priority: Priority::truncate(CNPV),
        encapsulated_destination: plan::mac(Lid::new(to)),
        ..Cnm::default()
    }
}
