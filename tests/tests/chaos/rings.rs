//! Proofs about the rings that are shared with the kernel: the real indices, against a kernel that the test plays.

use emulation::cable::packet_socket::counts::{NextSlot, SendCounts, frame_in_slot};
use std::collections::{HashSet, VecDeque};

/// Counts from which the proofs begin: the first, and those before the wrap of 32 bits.
const BEGINS: [u32; 2] = [0, u32::MAX - 3];

/// Each position of a ring of 4096 slots with each number of frames in it: the next slot is the one with the oldest frame,
/// or an empty one.
pub fn receive_ring() -> u64 {
    const SLOTS: usize = 4_096;
    let next = NextSlot::<SLOTS>::default();
    let mut slots = vec![None; SLOTS];
    let (mut head, mut received, mut cases) = (0, 0_u64, 0);
    let mut fill = |slots: &mut Vec<Option<u64>>| {
        // The kernel drops a frame for which there is no empty slot.
        let has_room = slots[head].is_none();
        if has_room {
            slots[head] = Some(received);
            (head, received) = ((head + 1) % SLOTS, received + 1);
        }
        has_room
    };
    let mut oldest = 0;
    for frames in 0..=SLOTS {
        for _ in 0..SLOTS {
            let full = frames == SLOTS;
            assert_eq!(fill(&mut slots), !full, "{frames} frames");
            let slot = &mut slots[next.index()];
            assert_eq!(slot.take(), Some(oldest), "{frames} frames, slot {}", next.index());
            next.advance();
            oldest += 1;
            assert_eq!(slots[next.index()], (frames > 0).then_some(oldest));
            // A full ring has room again for one.
            assert!(!full || fill(&mut slots));
            cases += 1;
        }
        assert!(frames == SLOTS || fill(&mut slots));
    }
    cases
}

/// Each offset that the kernel can name, and each length up to that of a slot and at the end of its range.
pub fn frames_in_slots() -> u64 {
    const SLOT: usize = 2_048;
    const BEFORE: usize = 10;
    let mut cases = 0;
    for offset in 0..=u16::MAX {
        for octets in (0..=SLOT as u32 + 1).chain(u32::MAX - 3..=u32::MAX) {
            let (begin, end) =
                (i64::from(offset) - BEFORE as i64, i64::from(offset) + i64::from(octets));
            let fits = begin >= 0 && end <= SLOT as i64;
            let found = frame_in_slot(SLOT, BEFORE, offset, octets);
            assert_eq!(found, fits.then_some(begin as usize..end as usize), "{offset} {octets}");
            cases += 1;
        }
    }
    cases
}

/// A ring of 512 places of 4096 octets as it is used: each number of frames that wait, of which the kernel takes each
/// number; and the place of each address.
pub fn send_counts() -> u64 {
    const PLACES: usize = 512;
    const PLACE: usize = 4_096;
    type Counts = SendCounts<PLACES, PLACE>;
    let mut cases = 0;
    for begin in BEGINS {
        for waits in 0..=PLACES {
            for takes in 0..=waits {
                let mut counts = Counts::new(begin);
                let mut seen = [false; PLACES];
                for ahead in 0..waits {
                    let (place, number) = counts.put().expect("a free place");
                    assert!(!std::mem::replace(&mut seen[place], true), "place {place} twice");
                    assert_eq!(number, begin.wrapping_add(ahead as u32));
                    assert_eq!(Counts::entry(number), (begin as usize + ahead) % PLACES);
                }
                assert!(waits < PLACES || counts.put().is_none());
                let consumed = begin.wrapping_add(takes as u32);
                let once = || (consumed, None::<()>);
                assert_eq!(counts.call(once, |()| false), (takes, None));
                assert_eq!((counts.waits(), counts.is_refused()), (waits - takes, false));
                cases += 1;
            }
        }
    }
    let memory = (PLACES * PLACE) as u64;
    let mut counts = Counts::new(0);
    while counts.put().is_some() {}
    for address in (0..memory + 2 * PLACE as u64).chain([1 << 47, u64::MAX]) {
        counts.returned(address);
        let place = counts.put().map(|(place, _)| place);
        assert_eq!(place, (address < memory).then_some(address as usize / PLACE));
        assert!(place.is_none_or(|place| address - Counts::address(place) < PLACE as u64));
        cases += 1;
    }
    cases
}

/// Places of the small ring whose states are all visited, and the octets of each.
const PLACES: usize = 4;
const OCTETS: usize = 16;
type Counts = SendCounts<PLACES, OCTETS>;
/// The address that a forgotten entry has.
const NOWHERE: u64 = 1 << 47;
/// Frames that are offered at a time. A ring is given up before more than half of its entries are forgotten.
const BATCH: usize = PLACES / 2;
/// Frames that are put in at most.
const FRAMES: u32 = 7;

/// An entry of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    /// The kernel has read it.
    Empty,
    /// It names no place.
    Forgotten,
    Frame {
        place: usize,
        frame: u32,
    },
}

/// How the kernel's work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It takes everything.
    All,
    /// The interface has no room for a frame, which stays.
    Busy,
    /// The interface refuses a frame, which is gone.
    Refused,
    /// The interface is off.
    Down,
}

/// The differences between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    /// A call ends behind a forgotten entry.
    skips_one: bool,
    /// A call that has sent nothing does not show its count.
    hides_count: bool,
    /// Forgotten entries come back as frames do.
    reports_forgotten: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kernel {
    entries: [Entry; PLACES],
    /// Entries read, and as many as it shows.
    read: u32,
    shown: u32,
    /// Places of frames in transmission, and addresses of those that have left.
    sending: VecDeque<usize>,
    gone: Vec<u64>,
}

impl Kernel {
    /// One call, in which `left` frames find room before the end. Adds the frames that are sent.
    fn call(
        &mut self,
        (kind, end): (Kind, End),
        written: u32,
        left: &mut usize,
        sent: &mut Vec<u32>,
    ) -> (u32, Option<End>) {
        let before = sent.len();
        let mut error = (end == End::Down).then_some(End::Down);
        while error.is_none() && self.read != written {
            let entry = &mut self.entries[self.read as usize % PLACES];
            match *entry {
                Entry::Empty => panic!("an entry is read twice"),
                Entry::Forgotten => self.gone.extend(kind.reports_forgotten.then_some(NOWHERE)),
                Entry::Frame { place, frame } if *left > 0 || end == End::All => {
                    *left = left.saturating_sub(1);
                    self.sending.push_back(place);
                    sent.push(frame);
                }
                Entry::Frame { place, .. } => {
                    error = Some(end);
                    if end == End::Busy {
                        break;
                    }
                    self.gone.push(Counts::address(place));
                }
            }
            let skipped = std::mem::replace(entry, Entry::Empty) == Entry::Forgotten;
            self.read = self.read.wrapping_add(1);
            if skipped && kind.skips_one {
                break;
            }
        }
        if sent.len() > before || !kind.hides_count {
            self.shown = self.read;
        }
        (self.shown, error)
    }
}

/// A ring, the kernel, and the number of the next frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    counts: Counts,
    kernel: Kernel,
    next: u32,
}

impl State {
    fn new(begin: u32) -> State {
        let entries = [Entry::Empty; PLACES];
        let (sending, gone) = Default::default();
        let kernel = Kernel { entries, read: begin, shown: begin, sending, gone };
        State { counts: Counts::new(begin), kernel, next: 0 }
    }

    /// Each place is free, waits, is in transmission or has been returned, and only one of these.
    fn check(&self) {
        let mut free = self.counts.clone();
        let mut places: Vec<usize> =
            std::iter::from_fn(|| free.put()).map(|(place, _)| place).collect();
        let waiting = self.kernel.entries.iter().filter_map(|entry| match entry {
            Entry::Frame { place, .. } => Some(*place),
            _ => None,
        });
        let waiting: Vec<usize> = waiting.collect();
        assert_eq!(waiting.len(), self.counts.waits(), "{self:?}");
        places.extend(waiting);
        let left = self.kernel.gone.iter().filter(|address| **address != NOWHERE);
        places.extend(left.map(|address| *address as usize / OCTETS));
        places.extend(&self.kernel.sending);
        places.sort_unstable();
        assert!(places.into_iter().eq(0..PLACES), "{self:?}");
    }

    /// What may happen next, but for calls of the kernel.
    fn others(&self) -> Vec<State> {
        let mut all = Vec::new();
        if let Some(place) = self.kernel.sending.front().copied() {
            let mut left = self.clone();
            left.kernel.sending.pop_front();
            left.kernel.gone.push(Counts::address(place));
            all.push(left);
        }
        if self.counts.is_refused() {
            let mut other_way = self.clone();
            other_way.counts.skip();
            other_way.next += 1;
            all.push(other_way);
        }
        let mut forgotten = self.clone();
        forgotten.next += u32::from(self.counts.is_refused());
        for number in forgotten.counts.forget() {
            let entry = &mut forgotten.kernel.entries[Counts::entry(number)];
            let Entry::Frame { place, frame } = std::mem::replace(entry, Entry::Forgotten) else {
                panic!("no frame waits there: {self:?}")
            };
            assert_eq!(frame, forgotten.next, "{self:?}");
            forgotten.next += 1;
            forgotten.counts.returned(Counts::address(place));
        }
        assert!(!forgotten.counts.is_refused(), "the refused frame was forgotten too");
        // Otherwise the ring is given up.
        if forgotten.counts.is_near(forgotten.kernel.shown) {
            all.push(forgotten);
        }
        all
    }

    /// Offers `new` frames more, of which the kernel takes `takes` before the end.
    fn send(&self, new: usize, (kind, end): (Kind, End), takes: usize) -> Option<State> {
        let mut state = self.clone();
        let State { counts, kernel, next } = &mut state;
        kernel.gone.drain(..).for_each(|address| counts.returned(address));
        for _ in 0..new {
            let frame = *next + counts.waits() as u32;
            let (place, number) = counts.put()?;
            let entry = &mut kernel.entries[Counts::entry(number)];
            assert_eq!(*entry, Entry::Empty, "an entry is written twice: {self:?}");
            *entry = Entry::Frame { place, frame };
        }
        let waits = counts.waits();
        if waits == 0 || takes > waits || end != End::Down && (takes == waits) != (end == End::All)
        {
            return None;
        }
        let (written, mut left, mut sent) = (counts.written(), takes, Vec::new());
        let once = || kernel.call((kind, end), written, &mut left, &mut sent);
        let (count, error) = counts.call(once, |error| *error == End::Refused);
        let due: Vec<u32> = (*next..).take(if end == End::Down { 0 } else { takes }).collect();
        assert_eq!((sent, error), (due, (end != End::All).then_some(end)), "{self:?}");
        assert_eq!(count, if end == End::Down { 0 } else { takes }, "{self:?}");
        assert_eq!(counts.is_refused(), end == End::Refused);
        *next += count as u32;
        Some(state)
    }

    fn successors(&self, kind: Kind) -> Vec<State> {
        let mut all = self.others();
        let most = BATCH.saturating_sub(self.counts.waits());
        if self.counts.is_refused() {
            return all;
        }
        for new in 0..=most {
            for takes in 0..=BATCH {
                for end in [End::All, End::Busy, End::Refused] {
                    all.extend(self.send(new, (kind, end), takes));
                }
            }
            all.extend(self.send(new, (kind, End::Down), 0));
        }
        all
    }
}

/// All states that a ring of four places reaches with seven frames, for each kind of kernel, and what may happen in each.
pub fn send_ring() -> u64 {
    let mut cases = 0;
    for bits in 0..8 {
        let [skips_one, hides_count, reports_forgotten] = [1, 2, 4].map(|bit| bits & bit != 0);
        let kind = Kind { skips_one, hides_count, reports_forgotten };
        for begin in BEGINS {
            let first = State::new(begin);
            let mut seen = HashSet::from([first.clone()]);
            let mut rest = vec![first];
            while let Some(state) = rest.pop() {
                state.check();
                for next in state.successors(kind) {
                    cases += 1;
                    if next.counts.written().wrapping_sub(begin) <= FRAMES && !seen.contains(&next)
                    {
                        seen.insert(next.clone());
                        rest.push(next);
                    }
                }
            }
        }
    }
    cases
}
