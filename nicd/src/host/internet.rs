//! ARP, ICMP and neighbour discovery: which packets are for this host, and what answers them.

use super::frames::Peer;
use super::{HostStack, echo, neighbour};
use crate::transport::receive::{Disposition, Outcome};
use proto::counters::DropReason;
use proto::ids::MacAddress;
use proto::wire::internet::checksum::verify_ipv4_header;
use proto::wire::internet::{Ipv4, Ipv6, icmp};

impl HostStack {
    pub(super) fn on_arp(&mut self, body: &[u8]) -> Option<Outcome> {
        let answer = neighbour::on_arp(&self.local, &mut self.neighbours, &mut self.pool, body)?;
        self.counters.neighbours += u64::from(answer.is_some());
        self.extend(answer);
        Some(Ok(Disposition::Delivered))
    }

    pub(super) fn on_ipv4(&mut self, packet: &[u8], source: MacAddress) -> Option<Outcome> {
        let ip = Ipv4::parse(packet).ok()?;
        let message = packet.get(ip.header_len()..usize::from(ip.total_length))?;
        let mine = ip.destination == self.local.ipv4 && ip.protocol == icmp::ICMP_V4;
        if !mine || ip.is_fragment() {
            return None;
        }
        let is_intact = verify_ipv4_header(&packet[..ip.header_len()]).is_ok();
        if !is_intact || !icmp::is_intact_v4(message) {
            return Some(Err(DropReason::Checksum));
        }
        self.on_icmp(&Peer { mac: source, ip: ip.source.into() }, message)
    }

    pub(super) fn on_ipv6(&mut self, packet: &[u8], source: MacAddress) -> Option<Outcome> {
        let ip = Ipv6::parse(packet).ok()?;
        let message = packet.get(Ipv6::LEN..Ipv6::LEN + usize::from(ip.payload_length))?;
        if ip.next_header != icmp::ICMP_V6 {
            return None;
        }
        if !icmp::is_intact_v6(message, ip.source, ip.destination) {
            return Some(Err(DropReason::Checksum));
        }
        let peer = Peer { mac: source, ip: ip.source.into() };
        if ip.hop_limit == neighbour::HOP_LIMIT {
            let (local, pool) = (&self.local, &mut self.pool);
            let answer = neighbour::on_discovery(local, &mut self.neighbours, pool, &peer, message);
            if let Some(answer) = answer {
                self.counters.neighbours += u64::from(answer.is_some());
                self.extend(answer);
                return Some(Ok(Disposition::Delivered));
            }
        }
        if ip.destination == self.local.ipv6 { self.on_icmp(&peer, message) } else { None }
    }

    fn on_icmp(&mut self, peer: &Peer, message: &[u8]) -> Option<Outcome> {
        if !neighbour::is_unicast(peer.ip) {
            return None;
        }
        let reply = echo::reply(&self.local, &mut self.pool, peer, message)?;
        self.counters.echoes += 1;
        self.extend(Some(reply));
        Some(Ok(Disposition::Delivered))
    }
}
