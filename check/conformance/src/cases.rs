//! The register of cases, read from `cases.toml`, and their scripts: one file a group.

use super::case::{Case, Group, Scripts};
use std::sync::LazyLock;

pub mod ar;
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
pub mod rc;
pub mod roce;
pub mod sm;

/// The scripts of every group.
pub(crate) const SCRIPTS: [Scripts; 14] = [
    enc::SCRIPTS,
    ibrx::SCRIPTS,
    ibfc::SCRIPTS,
    ibarb::SCRIPTS,
    ibcc::SCRIPTS,
    pfc::SCRIPTS,
    pfcwd::SCRIPTS,
    qos::SCRIPTS,
    roce::SCRIPTS,
    rc::SCRIPTS,
    qcn::SCRIPTS,
    ar::SCRIPTS,
    sm::SCRIPTS,
    fid::SCRIPTS,
];

/// Every group.
pub static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let read = toml::from_str::<Register>(include_str!("../cases.toml"));
    let mut groups = read.expect("cases.toml is a register").groups;
    for case in groups.iter_mut().flat_map(|group| &mut group.cases) {
        let found = SCRIPTS.iter().copied().flatten().find(|(id, _)| *id == case.id);
        case.script = found.map_or(case.script, |(_, script)| *script);
    }
    groups
});

/// The file of the register.
#[derive(serde::Deserialize)]
struct Register {
    groups: Vec<Group>,
}

/// Every case, in the order of the register.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    GROUPS.iter().flat_map(|group| &group.cases)
}
