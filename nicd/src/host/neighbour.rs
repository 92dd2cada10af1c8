//! Neighbours: this NIC answers ARP and neighbour solicitations, and asks for the MAC addresses of others.
//!
//! An entry is made by an answer, or by a question that names the asker. An entry that is asked for but unknown
//! is `Incomplete`: the question is repeated each second, three times. Known entries are used as long as the run
//! lasts, and a later packet of the neighbour corrects them. Source: RFC 826; RFC 4861, 7.2 and 7.3.

use crate::host::frames::{Local, Peer};
use proto::frame::{Frame, FramePool};
use proto::ids::MacAddress;
use proto::units::{Duration, Instant};
use proto::wire::internet::icmp::{
    LinkAddressOption, NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, Neighbour,
};
use proto::wire::internet::{Arp, ArpOperation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Time between two questions. Source: RFC 4861, 10 (RETRANS_TIMER).
const RETRANSMIT: Duration = Duration::from_us(1_000_000);
/// Questions before an address counts as unreachable. Source: RFC 4861, 10 (MAX_MULTICAST_SOLICIT).
const QUESTIONS: u8 = 3;
/// The hop limit of neighbour discovery, which proves that no router forwarded it. Source: RFC 4861, 7.1.
pub const HOP_LIMIT: u8 = 255;
/// The table has at most so many entries; the one learned first makes room.
const ENTRIES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Asked for; the next question is due at `again`.
    Incomplete { questions: u8, again: Instant },
    /// Known.
    Reachable(MacAddress),
}

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Its MAC address.
    Known(MacAddress),
    /// A question has been asked.
    Asked,
}

/// The table of neighbours.
#[derive(Debug, Default)]
pub struct Neighbours {
    entries: Vec<(IpAddr, State)>,
}

impl Neighbours {
    /// The MAC address of `ip`; begins to ask for it if it is unknown.
    pub fn resolve(&mut self, ip: IpAddr, now: Instant) -> Resolution {
        match self.entries.iter().find(|(known, _)| *known == ip) {
            Some((_, State::Reachable(mac))) => Resolution::Known(*mac),
            Some(_) => Resolution::Asked,
            None => {
                self.insert(ip, State::Incomplete { questions: 0, again: now });
                Resolution::Asked
            }
        }
    }

    /// The MAC address of `ip`, if it is known.
    pub fn known(&self, ip: IpAddr) -> Option<MacAddress> {
        self.entries.iter().find_map(|(known, state)| match state {
            State::Reachable(mac) if *known == ip => Some(*mac),
            _ => None,
        })
    }

    /// A packet of the neighbour shows its MAC address.
    pub fn learn(&mut self, peer: Peer) {
        let is_host = !peer.mac.is_group() && !peer.ip.is_unspecified() && !peer.ip.is_multicast();
        if is_host {
            self.insert(peer.ip, State::Reachable(peer.mac));
        }
    }

    fn insert(&mut self, ip: IpAddr, state: State) {
        if let Some(entry) = self.entries.iter_mut().find(|(known, _)| *known == ip) {
            entry.1 = state;
            return;
        }
        if self.entries.len() == ENTRIES_MAX {
            self.entries.remove(0);
        }
        self.entries.push((ip, state));
    }

    /// The next question that is due, or the address that stays unreachable after the last one.
    pub fn poll(&mut self, now: Instant) -> Option<Result<IpAddr, IpAddr>> {
        let at = self.entries.iter().position(
            |(_, state)| matches!(state, State::Incomplete { again, .. } if *again <= now),
        )?;
        let (ip, state) = &mut self.entries[at];
        let ip = *ip;
        let State::Incomplete { questions, again } = state else { return None };
        if *questions == QUESTIONS {
            self.entries.remove(at);
            return Some(Err(ip));
        }
        *questions += 1;
        *again = now + RETRANSMIT;
        Some(Ok(ip))
    }

    /// When [`Neighbours::poll`] has something next.
    pub fn poll_timeout(&self) -> Instant {
        let due = |(_, state): &(IpAddr, State)| match state {
            State::Incomplete { again, .. } => *again,
            State::Reachable(_) => Instant::NEVER,
        };
        self.entries.iter().map(due).min().unwrap_or(Instant::NEVER)
    }
}

/// The question for the MAC address of `ip`.
pub fn question(local: &Local, pool: &mut FramePool, ip: IpAddr) -> Frame {
    match ip {
        IpAddr::V4(target) => {
            let unknown = MacAddress::from_number(0);
            let arp = Arp::new(ArpOperation::Request, (local.mac, local.ipv4), (unknown, target));
            local.ethernet(pool, MacAddress::BROADCAST, Arp::ETHERTYPE, |octets| {
                octets.extend_from_slice(&arp.to_octets());
            })
        }
        IpAddr::V6(target) => {
            let low = target.to_bits() as u32 & 0xff_ffff;
            // Solicited-node multicast address. Source: RFC 4291, 2.7.1; RFC 2464, 7.
            let group =
                Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | u128::from(low));
            let mac = MacAddress::from_number(0x3333_ff00_0000 | u64::from(low));
            let message = discovery(NEIGHBOUR_SOLICITATION, false, target);
            let option = link_address(LinkAddressOption::SOURCE, local.mac);
            let peer = Peer { mac, ip: group.into() };
            local.icmp(pool, &peer, HOP_LIMIT, &[&message[..], &option[..]].concat())
        }
    }
}

/// Answers the ARP packet in `body` and learns from it; `None` if it asks nothing of this NIC.
pub fn on_arp(
    local: &Local,
    table: &mut Neighbours,
    pool: &mut FramePool,
    body: &[u8],
) -> Option<Option<Frame>> {
    let arp = Arp::parse(body).ok().filter(Arp::is_ipv4_over_ethernet)?;
    if arp.target_protocol != local.ipv4 || arp.sender_protocol == local.ipv4 {
        return None;
    }
    table.learn(Peer { mac: arp.sender_hardware, ip: arp.sender_protocol.into() });
    if arp.operation != ArpOperation::Request {
        return Some(None);
    }
    let asker = (arp.sender_hardware, arp.sender_protocol);
    let reply = Arp::new(ArpOperation::Reply, (local.mac, local.ipv4), asker);
    Some(Some(local.ethernet(pool, arp.sender_hardware, Arp::ETHERTYPE, |octets| {
        octets.extend_from_slice(&reply.to_octets());
    })))
}

/// Answers a neighbour solicitation, or learns from an advertisement; `None` if neither concerns this NIC. `from`
/// sent the `message`, whose checksum holds.
pub fn on_discovery(
    local: &Local,
    table: &mut Neighbours,
    pool: &mut FramePool,
    from: &Peer,
    message: &[u8],
) -> Option<Option<Frame>> {
    let neighbour = Neighbour::parse(message).ok().filter(|neighbour| neighbour.code == 0)?;
    let options = &message[Neighbour::LEN..];
    match neighbour.kind {
        NEIGHBOUR_SOLICITATION if neighbour.target == local.ipv6 => {
            let source = LinkAddressOption::find(options, LinkAddressOption::SOURCE).ok()?;
            let answer = discovery(NEIGHBOUR_ADVERTISEMENT, !from.ip.is_unspecified(), local.ipv6);
            let option = link_address(LinkAddressOption::TARGET, local.mac);
            let message = [&answer[..], &option[..]].concat();
            // A probe for duplicate addresses has no source address; the answer goes to all nodes (7.2.4).
            let all = Peer {
                mac: MacAddress::from_number(0x3333_0000_0001),
                ip: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
            };
            let asker = Peer { mac: source.unwrap_or(from.mac), ..*from };
            table.learn(asker);
            let to = if from.ip.is_unspecified() { all } else { asker };
            Some(Some(local.icmp(pool, &to, HOP_LIMIT, &message)))
        }
        NEIGHBOUR_ADVERTISEMENT if neighbour.target != local.ipv6 => {
            let target = LinkAddressOption::find(options, LinkAddressOption::TARGET).ok()?;
            table.learn(Peer { mac: target.unwrap_or(from.mac), ip: neighbour.target.into() });
            Some(None)
        }
        _ => None,
    }
}

fn discovery(kind: u8, solicited: bool, target: Ipv6Addr) -> [u8; Neighbour::LEN] {
    let override_entry = kind == NEIGHBOUR_ADVERTISEMENT;
    Neighbour {
        kind,
        code: 0,
        checksum: 0,
        router: false,
        solicited,
        override_entry,
        reserved29: 0,
        target,
    }
    .to_octets()
}

fn link_address(kind: u8, address: MacAddress) -> [u8; LinkAddressOption::LEN] {
    LinkAddressOption { kind, words: 1, address }.to_octets()
}

/// Whether an address can be that of a peer on the link.
pub fn is_unicast(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
}
