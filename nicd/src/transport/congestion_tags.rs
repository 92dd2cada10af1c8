//! Congestion tags in data frames, by which congestion points identify the sender's rate limiter.

use crate::transport::adapter::ChannelAdapter;
use crate::transport::notification_demux::flow_id;
use crate::transport::queue_pair::QueuePair;
use proto::congestion::Tag;
use proto::frame::Frame;
use proto::units::{Bytes, Instant};
use proto::wire::ethernet::CnTag;
use proto::wire::ethernet::{CongestionTag, preface};
use proto::wire::project::RateTag;

impl ChannelAdapter {
    /// The tag of a data frame of `pair` that leaves at `now`: the scheme's own, else a CN-TAG with the
    /// limiter's flow identifier if CN-TAGs are configured and the rate is limited. Its EtherType field is
    /// set on insertion.
    pub(super) fn congestion_tag(&self, pair: &QueuePair, now: Instant) -> Option<CongestionTag> {
        let format = self.wire.roce()?;
        let group = pair.pacing_group();
        let reaction = &self.pacer.group(group).reaction;
        match reaction.tag(now) {
            Some(Tag::RateRegulated { cpid, timestamp }) => {
                let tag = RateTag { cpid: cpid.get(), timestamp, ..RateTag::default() };
                Some(CongestionTag::RateRegulated(tag))
            }
            None if format.cn_tags && !reaction.is_released() => {
                let tag = CnTag { flow_id: flow_id(group), ..CnTag::default() };
                Some(CongestionTag::Cn(tag))
            }
            None => None,
        }
    }

    /// The size of a packet of `pair` with its tag.
    pub(super) fn tagged_size(&self, packet: Bytes, pair: &QueuePair, now: Instant) -> Bytes {
        let tag = self.congestion_tag(pair, now).map_or(0, |tag| tag.octets_len());
        packet + Bytes::new(tag as u64)
    }

    /// Inserts the tag into a transport packet.
    pub(super) fn insert_tag(&self, index: u32, frame: &mut Frame, now: Instant) {
        let tag = self.congestion_tag(&self.queue_pairs[index as usize], now);
        if let (Some(tag), Some(format)) = (tag, self.wire.roce()) {
            preface::insert_tag(&mut frame.octets, tag, &format.types)
                .expect("an emitted frame has an envelope");
        }
    }
}
