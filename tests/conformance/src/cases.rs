//! The register of cases: one row a group, one file a group.

use super::case::{Case, Group};

pub mod enc;
pub mod fid;
pub mod ibarb;
pub mod ibcc;
pub mod ibfc;
pub mod ibrx;
pub mod pfc;
pub mod pfcwd;
pub mod qcn;
pub mod qos;
pub mod roce;

/// Every group.
pub const GROUPS: &[Group] = &[
    enc::GROUP,
    ibrx::GROUP,
    ibfc::GROUP,
    ibarb::GROUP,
    ibcc::GROUP,
    pfc::GROUP,
    pfcwd::GROUP,
    qos::GROUP,
    roce::GROUP,
    qcn::GROUP,
    fid::GROUP,
];

/// Every case, in the order of the register.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    GROUPS.iter().flat_map(|group| group.cases)
}
