//! The two link technologies of this project, by name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

/// A word that names no technology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown technology {0:?}: use \"infiniband\" or \"ethernet\"")]
pub struct UnknownTechnology(String);

impl FromStr for Technology {
    type Err = UnknownTechnology;

    fn from_str(text: &str) -> Result<Technology, UnknownTechnology> {
        let named = Technology::ALL.into_iter().find(|technology| technology.name() == text);
        named.ok_or_else(|| UnknownTechnology(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_toml_and_display_use_the_same_names() {
        for technology in Technology::ALL {
            let name = technology.to_string();
            assert_eq!(name.parse(), Ok(technology));
            assert_eq!(toml::Value::try_from(technology), Ok(toml::Value::String(name)));
        }
        assert!("Ethernet".parse::<Technology>().is_err());
    }
}
