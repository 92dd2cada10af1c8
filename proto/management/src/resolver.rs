//! Path records: the LIDs that subnet administration gives for the adapters a node sends to.
//!
//! ```text
//!  want ──▶ asked ──answer──▶ known
//!             │  ▲               │
//!  no answer ─┘  └─── refresh ───┘
//! ```
//!
//! A peer is known by its port GUID, and until an answer comes by the LID of the plan. A refresh asks again for all:
//! the manager wants it (ClientReregister), or the node or its manager has another LID.
//! Source: IBTA Vol 1, 15.2.5.16 (PathRecord), 14.2.5.6 (ClientReregister).

use crate::attribute::administration::COMPONENT_MASK;
use crate::datagram::{ADMINISTRATION, Datagram, TRANSACTION, method};
use crate::segment::{self, Segment};
use proto::ids::{Lid, ServiceLevel};
use proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::ops::Range;

/// PathRecord. Source: IBTA Vol 1, 15.2.5.16.
const PATH_RECORD: u16 = 0x0035;
const DGID: Range<usize> = 8..24;
const SGID: Range<usize> = 24..40;
const DLID: Range<usize> = 40..42;
const SLID: Range<usize> = 42..44;
const P_KEY: Range<usize> = 50..52;
/// The low four bits are the service level.
const LEVEL: usize = 53;
/// The components that a query compares: DGID and SGID.
const COMPONENTS: u64 = 1 << 2 | 1 << 3;
/// The upper half of the transactions of this node's own requests. Programs beside it have lower numbers.
const OWN: u64 = 0xffff;
/// The wait for the first answer; it doubles with each repetition, up to 256 ms. Without an administration the LID stays
/// that of the plan.
const PATIENCE: Duration = Duration::from_us(2_000);
const DOUBLINGS: u32 = 7;
/// Requests without an answer at most.
const OPEN_MAX: usize = 16;

/// What a path record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// LID of the peer: with an LMC one of several, by which the packets take one of several ways.
    pub lid: Lid,
    /// LID of the sender, the same.
    pub source: Lid,
    /// Service level of packets to the peer.
    pub level: ServiceLevel,
    /// Their P_Key.
    pub key: u16,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    /// Requests without an answer so far.
    sendings: u32,
    /// When the next one is due; never once the LID is known.
    due: Instant,
}

/// The paths of one adapter.
#[derive(Debug)]
pub struct Resolver {
    /// The port GUID of LID 0 of the plan; each LID adds 256.
    first_guid: u64,
    own: Lid,
    /// By LID of the plan.
    paths: BTreeMap<Lid, Path>,
    /// When a request is due. Kept, because the owner asks for it after every frame.
    next: Instant,
    /// Peers whose request got no path, or no answer in time.
    unknown: Vec<Lid>,
}

/// Whether a datagram answers a request of the node itself.
pub fn is_own(datagram: &Datagram) -> bool {
    datagram.class() == ADMINISTRATION
        && datagram.is_response()
        && datagram.get(&TRANSACTION) >> 48 == OWN
}

impl Resolver {
    /// That of the adapter with planned LID `own` and node GUID `guid`.
    pub fn new(own: Lid, guid: u64) -> Resolver {
        let first_guid = guid.wrapping_add(1).wrapping_sub(u64::from(own.get()) << 8);
        Resolver {
            first_guid,
            own,
            paths: BTreeMap::new(),
            next: Instant::NEVER,
            unknown: Vec::new(),
        }
    }

    fn guid(&self, planned: Lid) -> u64 {
        self.first_guid.wrapping_add(u64::from(planned.get()) << 8)
    }

    /// The adapter sends to the peer with this LID of the plan.
    pub fn want(&mut self, planned: Lid) {
        self.paths.entry(planned).or_insert(Path::NEW);
        self.schedule();
    }

    /// Asks again for every peer. The LIDs known stay in use until the answers come.
    pub fn refresh(&mut self) {
        self.paths.values_mut().for_each(|path| *path = Path::NEW);
        self.schedule();
    }

    /// Whether another peer may be asked for.
    fn has_room(&self) -> bool {
        self.paths.values().filter(|path| path.is_asked()).count() < OPEN_MAX
    }

    /// When [`Resolver::poll`] has a request.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// The next peer, by its LID of the plan, to which no path is known now: there was none, or no answer to the first
    /// request.
    pub fn poll_unknown(&mut self) -> Option<Lid> {
        self.unknown.pop()
    }

    fn schedule(&mut self) {
        let has_room = self.has_room();
        let next = self.paths.values().filter(|path| has_room || path.is_asked());
        self.next = next.map(|path| path.due).min().unwrap_or(Instant::NEVER);
    }

    /// The next request to subnet administration that is due at `now`. `prefix` is the GID prefix of the port.
    pub fn poll(&mut self, prefix: u64, now: Instant) -> Option<Datagram> {
        if now < self.next {
            return None;
        }
        let has_room = self.has_room();
        let due = |(_, path): &(&Lid, &mut Path)| path.due <= now && (has_room || path.is_asked());
        let (planned, path) = self.paths.iter_mut().find(due)?;
        path.due = now + PATIENCE * (1 << path.sendings.min(DOUBLINGS));
        path.sendings += 1;
        let planned = *planned;
        if path.sendings == 2 {
            self.unknown.push(planned);
        }
        self.schedule();
        let transaction = OWN << 48 | u64::from(planned.get());
        let mut datagram =
            Datagram::request(ADMINISTRATION, method::GET, PATH_RECORD, 0, transaction);
        datagram.set(&COMPONENT_MASK, COMPONENTS);
        for (place, lid) in [(DGID, planned), (SGID, self.own)] {
            let gid = [prefix.to_be_bytes(), self.guid(lid).to_be_bytes()].concat();
            datagram.data_mut()[place].copy_from_slice(&gid);
        }
        Some(datagram)
    }

    /// Takes an answer that [`is_own`]: the peer by its LID of the plan with its path, and the acknowledgement that a
    /// segment needs.
    pub fn receive(
        &mut self,
        datagram: &Datagram,
    ) -> (Option<(Lid, PathRecord)>, Option<Datagram>) {
        let is_segment = segment::of(datagram) != Segment::None;
        let acknowledgement = is_segment.then(|| segment::acknowledge(datagram));
        let planned = Lid::new(datagram.get(&TRANSACTION) as u16);
        let data = datagram.data();
        let number = |at: Range<usize>| u16::from_be_bytes([data[at.start], data[at.start + 1]]);
        let [lid, source] = [DLID, SLID].map(|at| Lid::new(number(at)));
        let key = number(P_KEY);
        let level = ServiceLevel::truncate(data[LEVEL]);
        let guid = self.guid(planned).to_be_bytes();
        let is_good = datagram.status() == 0
            && datagram.attribute() == PATH_RECORD
            && data[DGID.start + 8..DGID.end] == guid
            && lid.is_unicast();
        if !is_good && datagram.attribute() == PATH_RECORD && self.paths.contains_key(&planned) {
            self.unknown.push(planned);
        }
        let path = self.paths.get_mut(&planned).filter(|_| is_good);
        let found = path.map(|path| {
            path.due = Instant::NEVER;
            (planned, PathRecord { lid, source, level, key })
        });
        self.schedule();
        (found, acknowledgement)
    }
}

impl Path {
    const NEW: Path = Path { sendings: 0, due: Instant::ZERO };

    /// Whether an answer is waited for.
    fn is_asked(&self) -> bool {
        self.sendings > 0 && self.due < Instant::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: u64 = 0xfe80_0000_0000_0000;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn answer(request: &Datagram, lid: u16) -> Datagram {
        let mut answer = request.clone();
        answer.answer(0);
        answer.data_mut()[DLID].copy_from_slice(&lid.to_be_bytes());
        answer.data_mut()[SLID].copy_from_slice(&9u16.to_be_bytes());
        answer.data_mut()[P_KEY].copy_from_slice(&0x8005u16.to_be_bytes());
        answer.data_mut()[LEVEL] = 0x13;
        answer
    }

    #[test]
    fn a_peer_is_asked_for_until_an_answer_comes_and_again_after_a_refresh() {
        let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200);
        assert_eq!(resolver.poll_timeout(), Instant::NEVER);
        resolver.want(Lid::new(7));
        let request = resolver.poll(PREFIX, at(0)).expect("a request");
        assert_eq!(
            request.data()[DGID],
            [PREFIX, 0x0250_4200_0000_0701].map(u64::to_be_bytes).concat()
        );
        assert_eq!(
            request.data()[SGID],
            [PREFIX, 0x0250_4200_0000_0201].map(u64::to_be_bytes).concat()
        );
        assert!(resolver.poll(PREFIX, at(0)).is_none());
        assert_eq!(resolver.poll_timeout(), at(2_000));
        assert_eq!(resolver.poll_unknown(), None);
        assert!(resolver.poll(PREFIX, at(2_000)).is_some());
        assert_eq!(resolver.poll_unknown(), Some(Lid::new(7)), "no answer to the first request");
        assert_eq!(resolver.poll_timeout(), at(6_000));
        let answer = answer(&request, 70);
        assert!(is_own(&answer) && !is_own(&request));
        let level = ServiceLevel::truncate(3);
        let path = PathRecord { lid: Lid::new(70), source: Lid::new(9), level, key: 0x8005 };
        assert_eq!(resolver.receive(&answer), (Some((Lid::new(7), path)), None));
        assert_eq!(resolver.poll_timeout(), Instant::NEVER);
        resolver.want(Lid::new(7));
        assert!(resolver.poll(PREFIX, at(70_000)).is_none(), "it is known");
        resolver.refresh();
        assert!(resolver.poll(PREFIX, at(70_000)).is_some());
    }

    #[test]
    fn no_more_than_sixteen_peers_are_asked_for_at_once() {
        let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200);
        (10..40).for_each(|lid| resolver.want(Lid::new(lid)));
        let all: Vec<_> = std::iter::from_fn(|| resolver.poll(PREFIX, at(0))).collect();
        assert_eq!(all.len(), OPEN_MAX);
        assert_eq!(resolver.poll_timeout(), at(2_000));
        resolver.receive(&answer(&all[3], 70));
        assert_eq!(resolver.poll_timeout(), Instant::ZERO);
        assert!(resolver.poll(PREFIX, at(1)).is_some() && resolver.poll(PREFIX, at(1)).is_none());
    }

    #[test]
    fn answers_that_do_not_fit_change_nothing() {
        let mut resolver = Resolver::new(Lid::new(2), 0x0250_4200_0000_0200);
        resolver.want(Lid::new(7));
        let request = resolver.poll(PREFIX, at(0)).expect("a request");
        let spoilt = |change: fn(&mut Datagram)| {
            let mut answer = answer(&request, 70);
            change(&mut answer);
            answer
        };
        let all = [
            spoilt(|it| it.answer(0x0300)),
            spoilt(|it| it.data_mut()[DGID.end - 1] ^= 1),
            spoilt(|it| it.data_mut()[DLID].fill(0)),
            spoilt(|it| it.set(&TRANSACTION, OWN << 48 | 8)),
            spoilt(|it| it.set(&crate::datagram::ATTRIBUTE, 0x11)),
        ];
        for answer in all {
            assert_eq!(resolver.receive(&answer).0, None, "{answer:?}");
        }
        let unknown = std::iter::from_fn(|| resolver.poll_unknown());
        assert_eq!(unknown.collect::<Vec<_>>(), [Lid::new(7); 3]);
        // It is asked for ever less often, and no oftener than four times a second.
        let mut now = at(0);
        for _ in 0..12 {
            now = resolver.poll_timeout();
            assert!(resolver.poll(PREFIX, now).is_some());
        }
        assert_eq!(resolver.poll_timeout().since(now), PATIENCE * (1 << DOUBLINGS));
    }
}
