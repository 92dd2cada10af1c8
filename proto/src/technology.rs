//! The two link technologies of this project, by name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A link technology. All ports of one device have the same one.
///
/// Its name is "infiniband" or "ethernet": in text, in TOML and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Technology {
    /// Credit flow control, virtual lanes, LIDs. Source: IBTA Vol 1.
    Infiniband,
    /// PAUSE or PFC, priorities, MAC addresses. Source: IEEE 802.3, IEEE 802.1Q.
    Ethernet,
}

impl Technology {
    /// Both technologies.
    pub const ALL: [Technology; 2] = [Technology::Infiniband, Technology::Ethernet];

    /// The name in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Technology::Infiniband => "infiniband",
            Technology::Ethernet => "ethernet",
        }
    }
}

impl fmt::Display for Technology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_toml_and_display_use_the_same_names() {
        for technology in Technology::ALL {
            let name = technology.to_string();
            let value = toml::Value::try_from(technology).expect("a technology is a word");
            assert_eq!(value, toml::Value::String(name));
            assert_eq!(value.try_into(), Ok(technology));
        }
        assert!(toml::Value::String("Ethernet".to_owned()).try_into::<Technology>().is_err());
    }
}
