//! The headers of a data packet as far as the file holds them; more patient than a device would be.
//!
//! A device refuses a packet whose lengths disagree. Here the headers are read all the same, so that
//! every disagreement can be reported by itself, and those of a cut packet are read up to the cut.
//! Source: IBTA Vol 1, 5.2 (which headers a packet has).

use proto::wire::infiniband::envelope::{ICRC_LEN, VCRC_LEN};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Grh, LinkNextHeader, Lrh};

/// What is known of a data packet without looking at its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// Local Route Header.
    pub lrh: Lrh,
    /// Global Route Header, if LNH says so and it is there.
    pub grh: Option<Grh>,
    /// Base Transport Header; `None` in a raw packet and where the octets end before it.
    pub bth: Option<Bth>,
    /// What the opcode calls for, if all of it is there.
    pub extended: Option<ExtendedHeaders>,
    /// Octets between headers and ICRC, pad included, on the wire.
    pub padded: Option<usize>,
}

impl Anatomy {
    /// Reads what `octets` hold of a packet that had `wire_size` octets on the wire, LRH to VCRC.
    /// `None` if not even the LRH is whole.
    pub fn of(octets: &[u8], wire_size: usize) -> Option<Anatomy> {
        let lrh = Lrh::parse(octets).ok()?;
        let mut anatomy = Anatomy { lrh, grh: None, bth: None, extended: None, padded: None };
        let mut at = Lrh::LEN;
        match lrh.next_header {
            LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6 => return Some(anatomy),
            LinkNextHeader::Local => {}
            LinkNextHeader::Global => {
                anatomy.grh = Grh::parse(&octets[at..]).ok();
                at += Grh::LEN;
                if anatomy.grh.is_none_or(|grh| grh.next_header != Grh::NEXT_HEADER_BTH) {
                    return Some(anatomy);
                }
            }
        }
        let Ok(bth) = Bth::parse(&octets[at..]) else { return Some(anatomy) };
        anatomy.bth = Some(bth);
        at += Bth::LEN;
        let set = bth.opcode.extended_headers();
        anatomy.extended = ExtendedHeaders::parse(set, &octets[at..], at).ok();
        anatomy.padded = wire_size.checked_sub(at + set.octets() + ICRC_LEN + VCRC_LEN);
        Some(anatomy)
    }

    /// Octets of payload on the wire, if the packet has a payload and PadCnt leaves one.
    pub fn payload(&self) -> Option<usize> {
        self.padded?.checked_sub(usize::from(self.bth?.pad_count))
    }
}
