//! The table of rules: a row a family. A family's own rules stand at the head of its file.

use super::{
    Family, Rule, Settings, congestion, crc, credit, ethernet, lengths, message, notification,
    pause, refresh, sequence,
};

/// One row: a family of rules.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its rules.
    pub rules: &'static [Rule],
    /// Makes a fresh one.
    pub make: fn(&Settings) -> Box<dyn Family>,
}

/// Every family, in the order in which they look at a frame.
pub const FAMILIES: &[Row] = &[
    Row { name: "crc", rules: crc::RULES, make: |_| Box::new(crc::Crcs) },
    Row { name: "lengths", rules: lengths::RULES, make: |_| Box::new(lengths::Lengths) },
    Row { name: "ethernet", rules: ethernet::RULES, make: |_| Box::new(ethernet::Ethernet) },
    Row {
        name: "notification",
        rules: notification::RULES,
        make: |_| Box::new(notification::Notifications),
    },
    Row {
        name: "pause",
        rules: pause::RULES,
        make: |settings| Box::new(pause::Silences::new(settings)),
    },
    Row {
        name: "congestion",
        rules: congestion::RULES,
        make: |settings| Box::new(congestion::Congestion::new(settings)),
    },
    Row {
        name: "sequence",
        rules: sequence::RULES,
        make: |_| Box::<sequence::Sequences>::default(),
    },
    Row { name: "message", rules: message::RULES, make: |_| Box::<message::Messages>::default() },
    Row { name: "credit", rules: credit::RULES, make: |_| Box::<credit::Credits>::default() },
    Row {
        name: "refresh",
        rules: refresh::RULES,
        make: |settings| Box::new(refresh::Refreshes::new(settings)),
    },
];
