//! The CN-TAG: identifies the sender's rate limiter that a frame passed.

use crate::wire::header::header;

header! {
    /// The four octets after the EtherType of a CN-TAG: the flow identifier and the next EtherType.
    ///
    /// ```text
    /// | flow id 16 | EtherType 16 |
    /// ```
    ///
    /// A switch copies the flow identifier into its notification and does not interpret it. A frame without
    /// the tag belongs to flow 0. Source: IEEE 802.1Q, 33.2.
    #[derive(Default)]
    pub struct CnTag[4] "CN-TAG" {
        /// Flow identifier, chosen by the sender.
        pub flow_id: u16 = 0..16,
        /// EtherType after the tag.
        pub ethertype: u16 = 16..32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;

    #[test]
    fn the_flow_id_stands_before_the_next_ethertype() {
        let tag = CnTag { flow_id: 7, ethertype: 0x0800 };
        assert_eq!(tag.to_octets(), [0, 7, 8, 0]);
    }

    #[test]
    fn every_flow_id_round_trips() {
        for flow_id in 0..=u16::MAX {
            let tag = CnTag { flow_id, ethertype: !flow_id };
            assert_eq!(CnTag::parse(&tag.to_octets()), Ok(tag));
        }
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..CnTag::LEN {
            let refused = Err(ParseError::short("CN-TAG", 0, 4, present));
            assert_eq!(CnTag::parse(&[0; 4][..present]), refused);
        }
    }
}
