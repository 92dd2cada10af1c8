//! `[fabric.switch.adaptive]`: how adaptive routing forgets congestion.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::quantity;
use proto::congestion::SchemeConfig;
use proto::units::Bytes;
use switchd::config::AdaptiveConfig;

/// The keys of `[fabric.switch.adaptive]`.
pub static KEYS: KeyTable = KeyTable {
    about: "the congestion table of adaptive routing",
    keys: &[
        Key {
            name: "timeout",
            kind: Kind::Span,
            need: Need::Default("\"250 ms\""),
            about: "how long another switch's word holds after its last notification",
        },
        Key {
            name: "low",
            kind: Kind::Size,
            need: Need::Optional,
            about: "a word about an output of the switch itself ends when its queue has fallen so far; \
                    half the scheme's cp_q_sp if left out",
        },
        Key {
            name: "absorb",
            kind: Kind::Flag,
            need: Need::Default("false"),
            about: "notifications end where another way is free, and sources do not hear of them",
        },
    ],
    variants: None,
    open: false,
};

/// Reads it from `[fabric]`; what it does not say follows from the scheme.
pub fn read(fabric: &Fields<'_>, scheme: &SchemeConfig) -> AdaptiveConfig {
    let AdaptiveConfig { timeout, low, absorb } = AdaptiveConfig::default();
    let half = scheme.params.get("cp_q_sp").and_then(|size| quantity::octets(size.as_str()?).ok());
    let low = half.map_or(low, |size| Bytes::new(size.get() / 2));
    let table = fabric.table("switch").and_then(|switch| switch.table("adaptive"));
    let Some(table) = table else { return AdaptiveConfig { timeout, low, absorb } };
    AdaptiveConfig {
        timeout: table.time("timeout").unwrap_or(timeout),
        low: table.size("low").unwrap_or(low),
        absorb: table.flag("absorb"),
    }
}
