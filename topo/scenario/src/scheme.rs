//! `[scheme]`: the congestion control scheme and its parameters, which the scheme's own file declares.

use crate::fabric::FabricSettings;
use crate::keyfile::fields::Fields;
use proto::congestion::schemes::{all, find};
use proto::congestion::{Place, SchemeConfig};
use proto::ids::PortNumber;
use proto::params::{Key, KeyTable, Kind, Variants};
use proto::random::Random;
use proto::technology::Technology;
use proto::units::Bytes;

/// The keys of `[scheme]`: its kind, and the parameters of that scheme.
pub static KEYS: KeyTable = KeyTable {
    about: "congestion control; further keys are parameters of the scheme (docs/schemes.md)",
    keys: &[Key::new("kind", Kind::Word(names), "none", "Which scheme.")],
    variants: &[Variants {
        by: "kind",
        rows: || {
            let keys = |keys: &[&'static [Key]]| keys.iter().copied().flatten().collect();
            all().iter().map(|scheme| (scheme.name, keys(scheme.keys))).collect()
        },
    }],
    open: false,
};

/// Reads `[scheme]`: the scheme must exist on the fabric's technology and accept its parameters.
pub fn read(fields: &Fields<'_>, technology: Technology) -> Option<SchemeConfig> {
    let kind = fields.text("kind")?;
    let scheme = find(kind)?;
    if !scheme.technologies.contains(&technology) {
        let fits = |other: &&str| find(other).is_some_and(|s| s.technologies.contains(&technology));
        let hint = names().into_iter().filter(fits).collect::<Vec<_>>().join(", ");
        let message = format!("{kind:?} does not work on {technology}");
        fields.error("kind", message, format!("one of {hint}"));
    }
    let params = fields.written(&["kind"]);
    for error in scheme.configure(&params).err().unwrap_or_default() {
        fields.report(&error.key, error.complaint);
    }
    Some(SchemeConfig { kind: kind.to_owned(), params })
}

/// The parameters that depend on the fabric, as they are in force on its default link.
pub fn in_force(scheme: &SchemeConfig, fabric: &FabricSettings) -> Vec<(&'static str, String)> {
    let place = Place {
        line_rate: fabric.link.rate,
        full_frame: fabric.full_frame(),
        buffer: Bytes::new(fabric.switch.buffer.get() / u64::from(fabric.link.shares())),
        port: PortNumber::from_index(0),
        faces_adapter: false,
        congestion_point: None,
        random: Random::stream(0, "", ""),
    };
    scheme.roles().map(|roles| roles.in_force(&place)).unwrap_or_default()
}

fn names() -> Vec<&'static str> {
    all().iter().map(|scheme| scheme.name).collect()
}
