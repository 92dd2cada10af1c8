//! `[scheme]`: which congestion control, with parameters that only its own file understands.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::{Complaint, Problems};
use proto::congestion::{ParamError, SchemeConfig};

/// The keys of `[scheme]`: its kind, and whatever the scheme itself knows.
pub static KEYS: KeyTable = KeyTable {
    about: "congestion control; further keys are the scheme's own parameters",
    keys: &[Key {
        name: "kind",
        kind: Kind::Word(registry::names),
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
    for ParamError { field, value, allowed } in (registry::check_of(kind)?)(&params) {
        let message = format!("{kind} refuses {field} = {value}");
        fields.report(problems, &field, Complaint::new(message, allowed));
    }
    Some(SchemeConfig { kind: kind.to_owned(), params })
}

/// The one place that asks which schemes there are; becomes `proto::congestion::schemes` once that
/// has rows.
mod registry {
    use super::ParamError;

    type Check = fn(&toml::Table) -> Vec<ParamError>;

    const IB_CCA: [&str; 15] = [
        "threshold",
        "sw_th_frac",
        "packet_size",
        "marking_rate",
        "victim_mask",
        "root_test",
        "scope",
        "becn",
        "ccti_increase",
        "ccti_limit",
        "ccti_min",
        "ccti_timer",
        "trigger_threshold",
        "cct",
        "cct_max_ipd",
    ];

    const ROWS: [(&str, Check); 2] = [
        ("none", |table| refuse_unknown(table, &[])),
        ("ib-cca", |table| refuse_unknown(table, &IB_CCA)),
    ];

    pub fn names() -> Vec<&'static str> {
        ROWS.iter().map(|row| row.0).collect()
    }

    pub fn check_of(kind: &str) -> Option<Check> {
        ROWS.iter().find(|row| row.0 == kind).map(|row| row.1)
    }

    fn refuse_unknown(table: &toml::Table, known: &[&str]) -> Vec<ParamError> {
        let unknown = table.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        unknown
            .map(|(key, value)| ParamError {
                field: key.clone(),
                value: value.to_string(),
                allowed: match known {
                    [] => "this scheme has no parameters".to_owned(),
                    _ => format!("unknown; this scheme knows {}", known.join(", ")),
                },
            })
            .collect()
    }
}
