//! The filter of a live capture: by direction, by lane, or only control frames.

use proto::events::Direction;
use proto::frame::{FrameClass, FrameKind};
use proto::wire::classify::classify;
use proto::wire::ethernet::ethertype;
use proto::wire::infiniband::FlowControlPacket;

/// The offset of the EtherType in MAC control frames, which have no tag.
const ETHERTYPE: std::ops::Range<usize> = 12..14;

/// The frames to keep; all by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only frames in this direction.
    pub direction: Option<Direction>,
    /// Only frames of this virtual lane or priority. PAUSE and PFC frames belong to all.
    pub lane: Option<u8>,
    /// Only credits, PAUSE, PFC, and congestion notifications.
    pub only_control: bool,
}

impl Filter {
    /// Whether it reads headers, so that frames must not be cut.
    pub(crate) const fn reads_headers(&self) -> bool {
        self.lane.is_some() || self.only_control
    }

    /// Whether a frame is kept. A frame that cannot be parsed is kept.
    pub fn wants(&self, kind: FrameKind, octets: &[u8], direction: Option<Direction>) -> bool {
        let goes = self.direction.is_none() || direction.is_none() || self.direction == direction;
        goes && (!self.reads_headers() || self.fits(kind, octets))
    }

    fn fits(&self, kind: FrameKind, octets: &[u8]) -> bool {
        if kind == FrameKind::InfinibandLink {
            let packet = FlowControlPacket::parse_intact(octets);
            return packet.map_or(true, |packet| self.is_lane(packet.virtual_lane.get()));
        }
        if kind == FrameKind::Ethernet
            && octets.get(ETHERTYPE) == Some(&ethertype::MAC_CONTROL.to_be_bytes()[..])
        {
            return true;
        }
        let Ok(headers) = classify(kind, octets) else { return true };
        let controls = headers.class == FrameClass::Notification || headers.becn;
        self.is_lane(headers.lane.get()) && (controls || !self.only_control)
    }

    fn is_lane(&self, lane: u8) -> bool {
        self.lane.is_none_or(|wanted| wanted == lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Untagged, VLAN-tagged with that priority, and MAC control.
    fn ethernet(priority: Option<u8>, ethertype: u16) -> Vec<u8> {
        let mut octets = vec![2; 12];
        if let Some(priority) = priority {
            octets.extend([0x81, 0x00, priority << 5, 1]);
        }
        octets.extend(ethertype.to_be_bytes());
        octets.resize(64, 0);
        octets
    }

    #[test]
    fn frames_are_chosen_by_direction_lane_and_purpose() {
        let data = ethernet(Some(3), 0x88b5);
        let pause = ethernet(None, ethertype::MAC_CONTROL);
        let wants = |filter: Filter, octets: &[u8]| {
            filter.wants(FrameKind::Ethernet, octets, Some(Direction::Tx))
        };
        let all = Filter::default();
        assert!(wants(all, &data) && wants(all, &pause) && wants(all, &[]));
        let received = Filter { direction: Some(Direction::Rx), ..all };
        let sent = Filter { direction: Some(Direction::Tx), ..all };
        assert!(!wants(received, &data) && wants(sent, &data));
        assert!(received.wants(FrameKind::Ethernet, &data, None), "its direction is unknown");
        let of = |lane| Filter { lane: Some(lane), ..all };
        assert!(wants(of(3), &data) && !wants(of(4), &data) && wants(of(4), &pause));
        let control = Filter { only_control: true, ..all };
        assert!(!wants(control, &data) && wants(control, &pause));
        assert!(wants(control, &[1, 2]), "what cannot be parsed is shown");
    }

    #[test]
    fn credits_are_of_a_lane() {
        // Op 0, FCTBS 1, VL 2, FCCL 3; its LPCRC is not looked at.
        let credit = [0x00, 0x01, 0x20, 0x03, 0, 0];
        let wants = |lane| {
            let filter = Filter { lane: Some(lane), only_control: true, ..Filter::default() };
            filter.wants(FrameKind::InfinibandLink, &credit, None)
        };
        assert!(wants(2) && !wants(1));
    }
}
