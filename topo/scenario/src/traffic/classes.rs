//! The connection classes of a scenario, as its traffic items ask for them.

use nicd::config::ClassConfig;

/// Connection classes as items ask for them. A queue pair's number has room for 255.
#[derive(Default)]
pub struct Classes {
    /// As items refer to them by index.
    pub list: Vec<ClassConfig>,
    /// Indexes of those that one item has for itself.
    own: Vec<usize>,
}

impl Classes {
    /// The index of `class`, which joins the list if no equal class can be shared.
    pub fn shared(&mut self, class: ClassConfig) -> Option<u8> {
        let known =
            |(index, known): (usize, &ClassConfig)| *known == class && !self.own.contains(&index);
        let found = self.list.iter().enumerate().position(known);
        u8::try_from(found.unwrap_or_else(|| self.add(class))).ok()
    }

    /// The index of a new class that no other item shares.
    pub fn own(&mut self, class: ClassConfig) -> Option<u8> {
        let index = self.add(class);
        self.own.push(index);
        u8::try_from(index).ok()
    }

    fn add(&mut self, class: ClassConfig) -> usize {
        self.list.push(class);
        self.list.len() - 1
    }
}
