//! Octets as a tape of decisions: whoever needs a number reads the next ones.

/// The rest of an input. At its end every number is 0.
#[derive(Clone, Copy, Debug)]
pub struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    /// The whole input.
    pub const fn new(octets: &'a [u8]) -> Tape<'a> {
        Tape(octets)
    }

    /// The next octet; `None` at the end.
    pub fn pull(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next octet.
    pub fn u8(&mut self) -> u8 {
        self.pull().unwrap_or(0)
    }

    /// The next two octets.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// A number below `bound`, of one octet.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// The next octets, as many as there are up to `most`.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
