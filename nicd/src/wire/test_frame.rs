//! Test frames of an Ethernet adapter: tagged, without a transport, never acknowledged.
//!
//! A test frame names its flow by the queue pair number that the receiver would use for it, so the receiver
//! identifies the flow from the frame alone.

use crate::wire::roce::RoceFormat;
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind, FramePool, ethernet_size};
use proto::ids::{Lid, QueuePairNumber, ServiceLevel};
use proto::units::Bytes;
use proto::wire::ethernet::{CongestionTag, Envelope, EthernetHeader, Preface, VlanTag, plan};
use proto::wire::project::{SUBTYPE_LEN, TestFrame};

/// Octets of the FCS, which a [`Frame`] does not hold. Source: IEEE 802.3, 3.2.9.
const FCS: usize = 4;

/// A test frame to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingTestFrame {
    /// The receiver.
    pub to: Lid,
    /// The service level, which selects the PCP.
    pub level: ServiceLevel,
    /// Octets from DA to FCS.
    pub size: u32,
    /// Flow, sequence number and departure time.
    pub header: TestFrame,
    /// A congestion tag, if the scheme inserts one.
    pub tag: Option<CongestionTag>,
}

/// A received test frame.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedTestFrame {
    /// The sender.
    pub from: Lid,
    /// The flow, as a queue pair number of this adapter.
    pub flow: QueuePairNumber,
    /// Flow, sequence number and departure time.
    pub header: TestFrame,
    /// Octets of the pattern behind the header.
    pub pattern: usize,
}

impl RoceFormat {
    /// Makes a test frame in a buffer of `pool`. A tag takes octets from the pattern: the size stays
    /// `frame.size`.
    pub fn emit_test_frame(&self, frame: &OutgoingTestFrame, pool: &mut FramePool) -> Frame {
        let mut octets = pool.take();
        octets.resize((frame.size as usize).saturating_sub(FCS), 0);
        let (to, from) = (plan::mac(frame.to), plan::mac(self.own));
        let plain = Envelope::untagged(to, from, self.types.test_frame());
        let envelope = self.data_tag(frame.level).map_or(plain, |tag: VlanTag| plain.tagged(tag));
        let preface = Preface::untagged(envelope);
        let preface = frame.tag.map_or(preface, |tag| preface.tagged(tag, &self.types));
        preface.emit(&mut octets);
        let rest = &mut octets[preface.octets_len()..];
        rest[0] = TestFrame::SUBTYPE;
        let (header, pattern) = rest[SUBTYPE_LEN..].split_at_mut(TestFrame::LEN);
        header.copy_from_slice(&frame.header.to_octets());
        frame.header.fill(pattern);
        Frame::intact(FrameKind::Ethernet, octets)
    }
}

/// Parses a test frame whose header begins at octet `at`.
///
/// # Errors
/// The drop reason.
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

/// The size on the line of a test frame of `octets` from DA to FCS: at least 64.
pub fn size(octets: u32) -> Bytes {
    ethernet_size((octets as usize).saturating_sub(FCS))
}
