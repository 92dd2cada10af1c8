//! A hash of a frame's flow: equal for all frames of a flow, independent for different flows.
//!
//! The flow is IP addresses, protocol and ports of UDP or TCP; for other frames the pair of MAC addresses.
//! Only first fragments carry ports, so the hash of a fragment leaves ports out. It also ignores tags of
//! congestion control, which come and go with the sender's rate limiter.

use proto::ids::PortNumber;
use proto::wire::ethernet::{Preface, ethertype};
use proto::wire::internet::{Ipv4View, Ipv6View};
use proto::wire::project::ProjectTypes;

/// Protocols whose header begins with two ports: TCP and UDP.
const WITH_PORTS: [u8; 2] = [6, ethertype::UDP];

/// The hash of the frame's flow. Each switch has its own `seed`; otherwise all switches would split flows in
/// the same way.
pub fn flow_hash(octets: &[u8], seed: u64) -> u64 {
    let mut hash = Hash(seed);
    let Ok(preface) = Preface::parse(octets, &ProjectTypes::DEFAULT) else { return hash.0 };
    let packet = &octets[preface.octets_len()..];
    match preface.ethertype() {
        ethertype::IPV4 => ipv4(packet, &mut hash),
        ethertype::IPV6 => ipv6(packet, &mut hash),
        _ => None,
    }
    .unwrap_or_else(|| {
        let ends = preface.envelope.header;
        hash.0 = pair_hash(ends.source.number(), ends.destination.number(), hash.0);
    });
    hash.0
}

/// The hash of all frames from one address to another.
pub fn pair_hash(source: u64, destination: u64, seed: u64) -> u64 {
    let mut hash = Hash(seed);
    hash.take(destination);
    hash.take(source);
    hash.0
}

/// The port of `legal`, which is not empty, that `hash` selects.
pub fn share(hash: u64, legal: &[PortNumber]) -> PortNumber {
    legal[((u128::from(hash) * legal.len() as u128) >> 64) as usize]
}

fn ipv4(packet: &[u8], hash: &mut Hash) -> Option<()> {
    let header = Ipv4View::new(packet).ok()?;
    let [source, destination] = [header.source(), header.destination()].map(|ip| ip.to_bits());
    hash.take(u64::from(source) << 32 | u64::from(destination));
    let ports = packet.get(usize::from(header.header_words()) * 4..)?;
    if !header.is_fragment() {
        hash.ports(header.protocol(), ports);
    }
    Some(())
}

fn ipv6(packet: &[u8], hash: &mut Hash) -> Option<()> {
    let header = Ipv6View::new(packet).ok()?;
    for address in [header.source(), header.destination()].map(|ip| ip.to_bits()) {
        hash.take((address >> 64) as u64);
        hash.take(address as u64);
    }
    hash.ports(header.next_header(), packet.get(40..)?);
    Some(())
}

struct Hash(u64);

impl Hash {
    /// Mixes a number in; each of its bits changes half of the result's bits.
    ///
    /// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (SplitMix64).
    fn take(&mut self, value: u64) {
        let mut z = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = z ^ z >> 31;
    }

    fn ports(&mut self, protocol: u8, octets: &[u8]) {
        let ports = octets.first_chunk::<4>().filter(|_| WITH_PORTS.contains(&protocol));
        let ports = ports.map_or(0, |ports| u32::from_be_bytes(*ports));
        self.take(u64::from(protocol) << 32 | u64::from(ports));
    }
}
