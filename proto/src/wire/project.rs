//! Frame formats defined by this project, because no standard defines them: test frames, and the messages and
//! tags of BCN.
//!
//! ```text
//! | Ethernet … | EtherType | subtype 8 | contents …
//! ```
//!
//! A subtype octet after the EtherType distinguishes the formats, so one local experimental EtherType is enough
//! for all. If that EtherType is in use, configure another one ([`ProjectTypes`]).

pub mod bcn;
pub mod pattern;
pub mod rate_tag;
pub mod test_frame;

pub use bcn::Bcn;
pub use rate_tag::RateTag;
pub use test_frame::TestFrame;

use crate::wire::ethertype;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Length of the subtype, which follows the EtherType, in octets.
pub const SUBTYPE_LEN: usize = 1;

/// The format that a subtype selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtype {
    /// A [`TestFrame`].
    TestFrame,
    /// A [`Bcn`].
    Bcn,
    /// A [`RateTag`].
    RateTag,
}

/// The EtherTypes of the project's frames: one for all formats, or one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectTypes {
    #[serde(deserialize_with = "unused")]
    test_frame: u16,
    #[serde(deserialize_with = "unused")]
    bcn: u16,
    #[serde(deserialize_with = "unused")]
    rate_tag: u16,
}

/// Error for an EtherType that has another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:#06x} cannot be an EtherType of this project: it is a length or has another meaning")]
pub struct TakenEtherType(pub u16);

/// The smallest EtherType; smaller numbers are lengths. Source: IEEE 802.3, 3.2.6.
const ETHERTYPE_MIN: u16 = 0x600;

/// EtherTypes that frames of the fabric already use.
const TAKEN: [u16; 9] = [
    ethertype::IPV4,
    ethertype::IPV6,
    ethertype::VLAN,
    ethertype::SERVICE_VLAN,
    ethertype::MAC_CONTROL,
    ethertype::CNM,
    ethertype::CN_TAG,
    ethertype::ROCE_V1,
    ethertype::CABLE_SHIM,
];

impl ProjectTypes {
    /// [`ethertype::PROJECT`] for all formats.
    pub const DEFAULT: ProjectTypes = ProjectTypes {
        test_frame: ethertype::PROJECT,
        bcn: ethertype::PROJECT,
        rate_tag: ethertype::PROJECT,
    };

    /// The default ones, but for `rate_tag`, which may be any EtherType.
    pub(crate) const fn of_tag(rate_tag: u16) -> ProjectTypes {
        ProjectTypes { rate_tag, ..ProjectTypes::DEFAULT }
    }

    /// These EtherTypes, which may be equal.
    ///
    /// # Errors
    /// If an EtherType is a length or has another meaning in the fabric.
    pub fn new(test_frame: u16, bcn: u16, rate_tag: u16) -> Result<ProjectTypes, TakenEtherType> {
        [test_frame, bcn, rate_tag].into_iter().try_for_each(check_unused)?;
        Ok(ProjectTypes { test_frame, bcn, rate_tag })
    }

    /// The EtherType of test frames.
    pub const fn test_frame(&self) -> u16 {
        self.test_frame
    }

    /// The EtherType of BCN messages.
    pub const fn bcn(&self) -> u16 {
        self.bcn
    }

    /// The EtherType of rate-regulated tags.
    pub const fn rate_tag(&self) -> u16 {
        self.rate_tag
    }

    /// The format of `body`, which follows an EtherType; `None` if it is not a frame of the project.
    #[inline]
    pub fn subtype(&self, ethertype: u16, body: &[u8]) -> Option<Subtype> {
        let (subtype, owner) = match *body.first()? {
            TestFrame::SUBTYPE => (Subtype::TestFrame, self.test_frame),
            Bcn::SUBTYPE => (Subtype::Bcn, self.bcn),
            RateTag::SUBTYPE => (Subtype::RateTag, self.rate_tag),
            _ => return None,
        };
        (ethertype == owner).then_some(subtype)
    }
}

impl Default for ProjectTypes {
    fn default() -> ProjectTypes {
        ProjectTypes::DEFAULT
    }
}

fn check_unused(kind: u16) -> Result<(), TakenEtherType> {
    let is_taken = kind < ETHERTYPE_MIN || TAKEN.contains(&kind);
    if is_taken { Err(TakenEtherType(kind)) } else { Ok(()) }
}

fn unused<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let kind = u16::deserialize(deserializer)?;
    check_unused(kind).map(|()| kind).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ethertype_serves_all() {
        let kind = |body: &[u8]| ProjectTypes::DEFAULT.subtype(0x88b6, body);
        assert_eq!(kind(&[1]), Some(Subtype::TestFrame));
        assert_eq!(kind(&[2]), Some(Subtype::Bcn));
        assert_eq!(kind(&[3]), Some(Subtype::RateTag));
        assert_eq!((kind(&[]), kind(&[0]), kind(&[4])), (None, None, None));
        assert_eq!(ProjectTypes::DEFAULT.subtype(0x88b5, &[1]), None);
    }

    #[test]
    fn each_can_have_its_own() {
        let types = ProjectTypes::new(0x9001, 0x9002, 0x9003).expect("the EtherTypes are free");
        for subtype in 0..=u8::MAX {
            for (kind, owner) in [(0x9001, 1), (0x9002, 2), (0x9003, 3), (0x88b6, 0)] {
                let found = types.subtype(kind, &[subtype]);
                assert_eq!(found.is_some(), subtype == owner && owner != 0, "{kind:#x} {subtype}");
            }
        }
    }

    #[test]
    fn a_used_ethertype_is_refused_by_number() {
        for kind in [0, 1500, 0x5ff, 0x0800, 0x86dd, 0x8100, 0x8808, 0x22e7, 0x22e9, 0x88b5] {
            assert_eq!(ProjectTypes::new(0x88b6, kind, 0x88b6), Err(TakenEtherType(kind)));
        }
        assert!(toml::from_str::<ProjectTypes>("rate_tag = 0x8100").is_err());
    }

    #[test]
    fn ethertypes_round_trip_through_toml() {
        let types = ProjectTypes::new(0x9001, 0x88b6, 0x9003).expect("the EtherTypes are free");
        let text = toml::to_string(&types).expect("the value serializes");
        assert_eq!(toml::from_str(&text), Ok(types), "{text}");
        assert_eq!(toml::from_str(""), Ok(ProjectTypes::DEFAULT));
    }
}
