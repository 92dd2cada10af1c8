//! Maps a frame's PCP or DSCP to its priority on an Ethernet link.

use crate::ids::{Dscp, Priority};
use serde::{Deserialize, Serialize};

/// The field that determines the priority at a port.
///
/// Source: IEEE 802.1Q, 6.9.4 (PCP); RFC 2474 and switch practice (DSCP).
///
/// Written as `"pcp"` or `"dscp"`, or with the tables of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum PriorityMap {
    /// The PCP of the first tag.
    Pcp {
        /// The priority of each PCP.
        table: [Priority; 8],
        /// The priority of frames without a tag.
        untagged: Priority,
    },
    /// The DSCP of the IP header.
    Dscp {
        /// The priority of each DSCP.
        table: [Priority; 64],
        /// The priority of frames without an IP header.
        other: Priority,
    },
}

impl Default for PriorityMap {
    /// Each PCP is its own priority; frames without a tag have priority 0.
    fn default() -> PriorityMap {
        PriorityMap::BY_PCP
    }
}

const LOWEST: Priority = Priority::truncate(0);

impl PriorityMap {
    /// Each PCP is its own priority; frames without a tag have priority 0.
    pub const BY_PCP: PriorityMap = {
        let mut table = [LOWEST; 8];
        let mut pcp = 0;
        while pcp < table.len() {
            table[pcp] = Priority::truncate(pcp as u8);
            pcp += 1;
        }
        PriorityMap::Pcp { table, untagged: LOWEST }
    };

    /// The upper three bits of the DSCP (its class selector) are the priority. Frames without IP have
    /// priority 0.
    ///
    /// Source: RFC 2474, 4.2.2.
    pub const BY_DSCP: PriorityMap = {
        let mut table = [LOWEST; 64];
        let mut dscp = 0;
        while dscp < table.len() {
            table[dscp] = Priority::truncate((dscp >> 3) as u8);
            dscp += 1;
        }
        PriorityMap::Dscp { table, other: LOWEST }
    };

    /// The priority of a frame with this PCP and this DSCP; `None` stands for a missing field.
    pub const fn priority(&self, pcp: Option<Priority>, dscp: Option<Dscp>) -> Priority {
        match (self, pcp, dscp) {
            (PriorityMap::Pcp { table, .. }, Some(pcp), _) => table[pcp.index()],
            (PriorityMap::Pcp { untagged, .. }, None, _) => *untagged,
            (PriorityMap::Dscp { table, .. }, _, Some(dscp)) => table[dscp.index()],
            (PriorityMap::Dscp { other, .. }, _, None) => *other,
        }
    }
}

/// The map in configuration files. Tables of 64 are lists, because serde supports arrays up to 32 entries.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Written {
    Pcp,
    Dscp,
    PcpTable { table: Vec<Priority>, untagged: Priority },
    DscpTable { table: Vec<Priority>, other: Priority },
}

impl From<PriorityMap> for Written {
    fn from(map: PriorityMap) -> Written {
        match map {
            PriorityMap::BY_PCP => Written::Pcp,
            PriorityMap::BY_DSCP => Written::Dscp,
            PriorityMap::Pcp { table, untagged } => {
                Written::PcpTable { table: table.to_vec(), untagged }
            }
            PriorityMap::Dscp { table, other } => {
                Written::DscpTable { table: table.to_vec(), other }
            }
        }
    }
}

impl TryFrom<Written> for PriorityMap {
    type Error = String;

    fn try_from(written: Written) -> Result<PriorityMap, String> {
        fn whole<const N: usize>(table: &[Priority]) -> Result<[Priority; N], String> {
            let entries = table.len();
            table.try_into().map_err(|_| format!("a table has {N} priorities, not {entries}"))
        }
        Ok(match written {
            Written::Pcp => PriorityMap::BY_PCP,
            Written::Dscp => PriorityMap::BY_DSCP,
            Written::PcpTable { table, untagged } => {
                PriorityMap::Pcp { table: whole(&table)?, untagged }
            }
            Written::DscpTable { table, other } => {
                PriorityMap::Dscp { table: whole(&table)?, other }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Port {
        priorities: PriorityMap,
    }

    #[test]
    fn default_maps_are_words_and_other_maps_are_full_tables() {
        let mut table = [LOWEST; 64];
        table[26] = Priority::truncate(3);
        let odd = PriorityMap::Dscp { table, other: LOWEST };
        let odd_tags = PriorityMap::Pcp { table: [LOWEST; 8], untagged: Priority::truncate(1) };
        for priorities in [PriorityMap::BY_PCP, PriorityMap::BY_DSCP, odd, odd_tags] {
            let port = Port { priorities };
            let text = toml::to_string(&port).expect("the value serializes");
            assert_eq!(toml::from_str(&text), Ok(port), "{text}");
        }
        let word: Port = toml::from_str("priorities = 'dscp'").expect("a word");
        assert_eq!(word.priorities, PriorityMap::BY_DSCP);
        let short = "priorities.pcp-table = { table = [0, 1], untagged = 0 }";
        let refused = toml::from_str::<Port>(short).expect_err("too short");
        assert!(refused.to_string().contains("a table has 8 priorities, not 2"), "{refused}");
    }
}
