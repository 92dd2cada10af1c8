//! `[scheme]`: which congestion control, with parameters that only its own file understands.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::{Complaint, Problems};
use proto::congestion::schemes::{SCHEMES, find};
use proto::congestion::{ParamError, SchemeConfig};

/// The keys of `[scheme]`: its kind, and whatever the scheme itself knows.
pub static KEYS: KeyTable = KeyTable {
    about: "congestion control; further keys are the scheme's own parameters",
    keys: &[Key {
        name: "kind",
        kind: Kind::Word(names),
        need: Need::Default("\"none\""),
        about: "which scheme",
    }],
    variants: None,
    open: true,
};

/// Reads `[scheme]` and lets the scheme judge its parameters.
pub fn read(fields: &Fields<'_>, problems: &mut Problems) -> Option<SchemeConfig> {
    let kind = fields.text("kind")?;
    let mut params = fields.table_itself().to_toml();
    params.remove("kind");
    for ParamError { field, value, allowed } in (find(kind)?.check)(&params) {
        let message = format!("{kind} refuses {field} = {value}");
        fields.report(problems, &field, Complaint::new(message, allowed));
    }
    Some(SchemeConfig { kind: kind.to_owned(), params })
}

fn names() -> Vec<&'static str> {
    SCHEMES.iter().map(|scheme| scheme.name).collect()
}
