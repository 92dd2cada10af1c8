//! Enhanced transmission selection: strict classes first, then weighted classes by octet deficits.
//!
//! A weighted class may send while its credit is positive; its last frame may overdraw the credit. When no
//! eligible class has credit left, rounds pass: each class gains as many octets as its weight, until one
//! of the eligible classes has credit again. A class that is empty or paused pays its debt off but gains
//! no credit. So while the same classes stay backlogged, each gets its share to within one frame.
//!
//! Source: IEEE 802.1Q, 8.6.8.1 (strict priority), 8.6.8.3 and 37.3 (ETS); the deficits are those of
//! Shreedhar and Varghese, "Efficient fair queuing using deficit round-robin".

use crate::ids::VirtualLane;
use crate::link::config::{EtsConfig, Selection};
use crate::units::Bytes;
use crate::wire::ethernet::Pfc;

const CLASSES: usize = Pfc::PRIORITIES;

/// One traffic class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Priorities of the class, bit n for priority n.
    priorities: u8,
    selection: Selection,
    /// Octets that the class may still send in this round; negative after an overdraft.
    credit: i64,
    /// The priority served last.
    last: usize,
}

impl Class {
    fn weight(&self) -> Option<i64> {
        match self.selection {
            Selection::Strict => None,
            Selection::Weighted(weight) => Some(i64::from(weight.get())),
        }
    }

    /// The next priority of the class in round robin, one frame each.
    fn next(&self, eligible: u8) -> usize {
        let following = |step| (self.last + step) % CLASSES;
        (1..=CLASSES).map(following).find(|n| eligible >> n & 1 == 1).unwrap_or(self.last)
    }
}

/// The arbiter of one port.
#[derive(Clone, Debug)]
pub struct EtsArbiter {
    /// By number.
    classes: [Class; CLASSES],
    /// The weighted class whose turn it is.
    turn: usize,
}

impl EtsArbiter {
    /// An arbiter in its initial state.
    pub fn new(config: &EtsConfig) -> EtsArbiter {
        let class = |class: usize| Class {
            priorities: (0..CLASSES)
                .filter(|priority| config.classes[*priority].index() == class)
                .fold(0, |all, priority| all | 1 << priority),
            selection: config.selection[class],
            credit: 0,
            last: CLASSES - 1,
        };
        EtsArbiter { classes: std::array::from_fn(class), turn: 0 }
    }

    /// Selects classes otherwise from the next frame on. No class keeps credit or debt, so the new shares hold within a
    /// round.
    pub fn select(&mut self, selection: &[Selection; CLASSES]) {
        for (class, selection) in self.classes.iter_mut().zip(selection) {
            (class.selection, class.credit) = (*selection, 0);
        }
    }

    /// The priority among `eligible` (bit n is priority n) that sends next. `size` returns the octets of its
    /// next frame; its class is charged for them.
    pub fn serve(
        &mut self,
        eligible: u8,
        size: impl Fn(VirtualLane) -> Bytes,
    ) -> Option<VirtualLane> {
        let waits = |class: &Class| class.priorities & eligible != 0;
        let is_strict = |class: &Class| class.selection == Selection::Strict;
        let strict = self.classes.iter().rposition(|class| is_strict(class) && waits(class));
        let index = match strict {
            Some(index) => index,
            None => self.weighted(eligible)?,
        };
        let class = &mut self.classes[index];
        class.last = class.next(class.priorities & eligible);
        let priority = VirtualLane::truncate(class.last as u8);
        class.credit -= size(priority).get() as i64;
        Some(priority)
    }

    /// The weighted class that has credit first, this one's turn included; rounds pass until then.
    fn weighted(&mut self, eligible: u8) -> Option<usize> {
        let rounds = |class: &Class| {
            let weight = class.weight().filter(|_| class.priorities & eligible != 0)?;
            Some(if class.credit > 0 { 0 } else { -class.credit / weight + 1 })
        };
        let in_turn = (0..CLASSES).map(|step| (self.turn + step) % CLASSES);
        let (passed, chosen) = in_turn
            .filter_map(|index| rounds(&self.classes[index]).map(|rounds| (rounds, index)))
            .min_by_key(|(rounds, _)| *rounds)?;
        for class in &mut self.classes {
            let Some(weight) = class.weight() else { continue };
            class.credit += weight * passed;
            if class.priorities & eligible == 0 {
                class.credit = class.credit.min(0);
            }
        }
        self.turn = chosen;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests;
