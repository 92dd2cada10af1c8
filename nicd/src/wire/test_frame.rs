//! Test frames of an adapter of Ethernet: a tag that tells the priority, no transport, no answer.
//!
//! A flow has the number that a queue pair for it would have at the far end, so that the far end knows
//! from the frame alone whose it is.

use crate::wire::roce::RoceFormat;
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind, FramePool, ethernet_size};
use proto::ids::{Lid, QueuePairNumber, ServiceLevel};
use proto::units::Bytes;
use proto::wire::ethernet::{CongestionTag, Envelope, EthernetHeader, Preface, VlanTag, plan};
use proto::wire::project::{SUBTYPE_LEN, TestFrame};

/// Octets that are not among a frame's own here. Source: IEEE 802.3, 3.2.9.
const FCS: usize = 4;

/// A test frame to be sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingTestFrame {
    /// To whom.
    pub to: Lid,
    /// With which service level.
    pub level: ServiceLevel,
    /// Octets from DA to FCS.
    pub size: u32,
    /// What it says.
    pub header: TestFrame,
    /// A tag of congestion control.
    pub tag: Option<CongestionTag>,
}

/// A test frame that came in.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedTestFrame {
    /// Who sent it.
    pub from: Lid,
    /// Its flow, as a queue pair of ours.
    pub flow: QueuePairNumber,
    /// What it says.
    pub header: TestFrame,
    /// Octets of pattern.
    pub pattern: usize,
}

impl RoceFormat {
    /// Makes a test frame in a buffer of `pool`.
    pub fn emit_test_frame(&self, frame: &OutgoingTestFrame, pool: &mut FramePool) -> Frame {
        let mut octets = pool.take();
        octets.resize((frame.size as usize).saturating_sub(FCS), 0);
        let (to, from) = (plan::mac(frame.to), plan::mac(self.lid()));
        let plain = Envelope::untagged(to, from, self.project_types().test_frame());
        let envelope = self.data_tag(frame.level).map_or(plain, |tag: VlanTag| plain.tagged(tag));
        let preface = Preface::untagged(envelope);
        let preface = frame.tag.map_or(preface, |tag| preface.tagged(tag, self.project_types()));
        preface.emit(&mut octets);
        let rest = &mut octets[preface.octets_len()..];
        rest[0] = TestFrame::SUBTYPE;
        let (header, pattern) = rest[SUBTYPE_LEN..].split_at_mut(TestFrame::LEN);
        header.copy_from_slice(&frame.header.to_octets());
        frame.header.fill(pattern);
        Frame::intact(FrameKind::Ethernet, octets)
    }
}

/// Takes a test frame apart, whose header begins at `at`.
///
/// # Errors
/// The reason to drop it.
pub fn parse(octets: &[u8], at: usize) -> Result<ReceivedTestFrame, DropReason> {
    let header = TestFrame::parse(&octets[at..]).map_err(|error| error.drop_reason())?;
    let ethernet = EthernetHeader::parse(octets).map_err(|error| error.drop_reason())?;
    Ok(ReceivedTestFrame {
        from: plan::adapter_of_mac(ethernet.source).ok_or(DropReason::QueuePair)?,
        flow: QueuePairNumber::truncate(header.flow),
        pattern: octets.len() - at - TestFrame::LEN,
        header,
    })
}

/// The size of a test frame on the line.
pub fn size(octets: u32) -> Bytes {
    ethernet_size((octets as usize).saturating_sub(FCS))
}
