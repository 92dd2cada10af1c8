//! The octets of an input as a tape of decisions: each number is read from the next octets.

/// The unread rest of an input. After its end every number is 0.
#[derive(Clone, Copy, Debug)]
pub struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    /// A tape over the whole input.
    pub const fn new(octets: &'a [u8]) -> Tape<'a> {
        Tape(octets)
    }

    /// The next octet; `None` at the end of the input.
    pub fn pull(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next octet.
    pub fn u8(&mut self) -> u8 {
        self.pull().unwrap_or(0)
    }

    /// The next two octets as a number.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// A number below `bound`, from one octet.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// The next octets, at most `most`.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
