//! The table of families, one row each. The rules of a family stand at the top of its file.

use super::*;

/// A family of rules.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its rules.
    pub rules: &'static [Rule],
    /// Makes its state for one capture.
    pub(super) make: Make,
}

type Make = fn(&Settings) -> Box<dyn Family>;

const fn row(name: &'static str, rules: &'static [Rule], make: Make) -> Row {
    Row { name, rules, make }
}

/// All families, in the order in which they check a frame.
pub const FAMILIES: &[Row] = &[
    row("crc", crc::RULES, |_| Box::new(crc::check)),
    row("lengths", lengths::RULES, |_| Box::new(lengths::check)),
    row("line", line::RULES, |settings| Box::new(line::Lines::new(settings))),
    row("ethernet", ethernet::RULES, |_| Box::new(ethernet::check)),
    row("notification", notification::RULES, |_| Box::new(notification::check)),
    row("pause", pause::RULES, |settings| Box::new(pause::Pauses::new(settings))),
    row("congestion", congestion::RULES, |settings| {
        Box::new(congestion::Congestion::new(settings))
    }),
    row("sequence", sequence::RULES, |settings| Box::new(sequence::Sequences::new(settings))),
    row("message", message::RULES, |_| Box::<message::Messages>::default()),
    row("credit", credit::RULES, |_| Box::<credit::Credits>::default()),
    row("refresh", refresh::RULES, |settings| Box::new(refresh::Refreshes::new(settings))),
];
