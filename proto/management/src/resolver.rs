//! What a node asks subnet administration for: paths to the adapters it sends to, and membership in multicast groups.
//!
//! ```text
//!  want, groups ──▶ asked ──answer──▶ known
//!                     │  ▲               │
//!          no answer ─┘  └─── refresh ───┘
//! ```
//!
//! A peer is known by its port GUID, and until an answer comes by the LID of the plan. A refresh asks again for all:
//! the manager wants it (ClientReregister), or the node or its manager has another LID. A refused join is repeated like
//! one without an answer. Source: IBTA Vol 1, 15.2.5.16 (PathRecord), 15.2.5.17 (MCMemberRecord), 14.2.5.6
//! (ClientReregister).

use crate::attribute::administration::COMPONENT_MASK;
use crate::datagram::{ADMINISTRATION, Datagram, TRANSACTION, method};
use crate::records::{GroupConfig, MC_MEMBER_RECORD, Membership, PathRecord};
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

/// What an answer says of a peer or a group, which its LID of the plan names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The path to the peer.
    Path(Lid, PathRecord),
    /// The port belongs to the group.
    Joined(Lid, Membership),
    /// The administration refuses the join.
    Refused(Lid),
}

#[derive(Clone, Copy, Debug)]
struct Path {
    /// Requests without an answer so far.
    sendings: u32,
    /// Refused joins so far.
    refusals: u32,
    /// When the next one is due; never once the LID is known.
    due: Instant,
}

/// The paths and groups of one adapter.
#[derive(Debug)]
pub struct Resolver {
    /// The port GUID of LID 0 of the plan; each LID adds 256.
    first_guid: u64,
    own: Lid,
    /// The groups that the port joins.
    groups: Vec<GroupConfig>,
    /// By LID of the plan, of peers and of groups.
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
    /// That of the adapter with planned LID `own` and node GUID `guid`, whose port joins `groups`.
    pub fn new(own: Lid, guid: u64, groups: &[GroupConfig]) -> Resolver {
        let first_guid = guid.wrapping_add(1).wrapping_sub(u64::from(own.get()) << 8);
        let mut resolver = Resolver {
            first_guid,
            own,
            groups: groups.to_vec(),
            paths: groups.iter().map(|group| (group.lid, Path::NEW)).collect(),
            next: Instant::NEVER,
            unknown: Vec::new(),
        };
        resolver.schedule();
        resolver
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

    /// The next request to subnet administration that is due at `now`. `prefix` is the GID prefix of the port, and `key`
    /// its first P_Key.
    pub fn poll(&mut self, prefix: u64, key: u16, now: Instant) -> Option<Datagram> {
        if now < self.next {
            return None;
        }
        let has_room = self.has_room();
        let due = |(_, path): &(&Lid, &mut Path)| path.due <= now && (has_room || path.is_asked());
        let (planned, path) = self.paths.iter_mut().find(due)?;
        path.due = now + PATIENCE * (1 << path.sendings.min(DOUBLINGS));
        path.sendings += 1;
        let (planned, path) = (*planned, *path);
        if path.sendings == 2 && planned.is_unicast() {
            self.unknown.push(planned);
        }
        self.schedule();
        let transaction = OWN << 48 | u64::from(planned.get());
        if let Some(group) = self.groups.iter().find(|group| group.lid == planned) {
            let port = [prefix, self.guid(self.own)];
            return Some(group.join(transaction, port, key, path.refusals));
        }
        let mut datagram =
            Datagram::request(ADMINISTRATION, method::GET, PATH_RECORD, 0, transaction);
        datagram.set(&COMPONENT_MASK, COMPONENTS);
        for (place, lid) in [(DGID, planned), (SGID, self.own)] {
            let gid = [prefix.to_be_bytes(), self.guid(lid).to_be_bytes()].concat();
            datagram.data_mut()[place].copy_from_slice(&gid);
        }
        Some(datagram)
    }

    /// Takes an answer that [`is_own`]: what it says, and the acknowledgement that a segment needs.
    pub fn receive(&mut self, datagram: &Datagram) -> (Option<Answer>, Option<Datagram>) {
        let is_segment = segment::of(datagram) != Segment::None;
        let acknowledgement = is_segment.then(|| segment::acknowledge(datagram));
        let planned = Lid::new(datagram.get(&TRANSACTION) as u16);
        let answer = match datagram.attribute() {
            PATH_RECORD => self.take_path(planned, datagram),
            MC_MEMBER_RECORD => self.take_membership(planned, datagram),
            _ => None,
        };
        self.schedule();
        (answer, acknowledgement)
    }

    fn take_path(&mut self, planned: Lid, datagram: &Datagram) -> Option<Answer> {
        let data = datagram.data();
        let number = |at: Range<usize>| u16::from_be_bytes([data[at.start], data[at.start + 1]]);
        let [lid, source] = [DLID, SLID].map(|at| Lid::new(number(at)));
        let key = number(P_KEY);
        let level = ServiceLevel::truncate(data[LEVEL]);
        let guid = self.guid(planned).to_be_bytes();
        let is_good =
            datagram.status() == 0 && data[DGID.start + 8..DGID.end] == guid && lid.is_unicast();
        let path = self.paths.get_mut(&planned).filter(|_| planned.is_unicast())?;
        if !is_good {
            self.unknown.push(planned);
            return None;
        }
        path.due = Instant::NEVER;
        Some(Answer::Path(planned, PathRecord { lid, source, level, key }))
    }

    fn take_membership(&mut self, planned: Lid, datagram: &Datagram) -> Option<Answer> {
        let group = self.groups.iter().find(|group| group.lid == planned)?;
        let path = self.paths.get_mut(&planned)?;
        if datagram.status() != 0 {
            path.refusals += u32::from(path.is_asked());
            return Some(Answer::Refused(planned));
        }
        let membership = group.joined(datagram)?;
        path.due = Instant::NEVER;
        Some(Answer::Joined(planned, membership))
    }
}

impl Path {
    const NEW: Path = Path { sendings: 0, refusals: 0, due: Instant::ZERO };

    /// Whether an answer is waited for.
    fn is_asked(&self) -> bool {
        self.sendings > 0 && self.due < Instant::NEVER
    }
}

#[cfg(test)]
mod tests;
