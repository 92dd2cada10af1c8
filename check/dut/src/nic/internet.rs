//! IP: echoes of ICMP, ARP and neighbour discovery of the host whose NIC it is.

use super::{Nic, OWN_MAC, Scripts};
use crate::verdict::{Check, must};
use bytes::BytesMut;
use proto::ids::{Ecn, MacAddress};
use proto::wire::ethernet::{Envelope, ethertype};
use proto::wire::internet::checksum::ipv4_header;
use proto::wire::internet::icmp::{
    ECHO_REPLY_V4, ECHO_REQUEST_V4, Echo, ICMP_V4, ICMP_V6, LinkAddressOption,
    NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, Neighbour, is_intact_v4, seal_v4, seal_v6,
};
use proto::wire::internet::{Arp, ArpOperation, Ipv4, Ipv6};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const SCRIPTS: Scripts = &[
    ("IP-01", echoed),
    ("IP-02", spoiled_echo),
    ("IP-03", other_address),
    ("IP-04", other_target),
];

/// Octets of the smallest frame without FCS.
const SMALLEST: usize = 60;
/// An address that no device has, for documentation.
const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0xdead, 0xbeef);

fn framed(to: MacAddress, ethertype: u16, parts: &[&[u8]]) -> BytesMut {
    let envelope = Envelope::untagged(to, OWN_MAC, ethertype);
    let mut octets = BytesMut::zeroed(envelope.octets_len());
    envelope.emit(&mut octets);
    parts.iter().for_each(|part| octets.extend_from_slice(part));
    if octets.len() < SMALLEST {
        octets.resize(SMALLEST, 0);
    }
    octets
}

/// An echo request with this number and data.
fn request(sequence: u16, data: &[u8]) -> Vec<u8> {
    let echo = Echo { kind: ECHO_REQUEST_V4, code: 0, checksum: 0, identifier: 0x5ac3, sequence };
    let mut message = [&echo.to_octets()[..], data].concat();
    seal_v4(&mut message);
    message
}

/// Sends a message of ICMP.
fn ask(nic: &mut Nic<'_>, message: &[u8]) -> Check<()> {
    let ip = Ipv4 {
        ecn: Ecn::NotCapable,
        total_length: (Ipv4::LEN + message.len()) as u16,
        time_to_live: 64,
        protocol: ICMP_V4,
        source: nic.file.peer,
        destination: nic.address,
        ..Ipv4::default()
    };
    let ip = Ipv4 { checksum: ipv4_header(&ip.to_octets()), ..ip };
    let octets = framed(nic.mac, ethertype::IPV4, &[&ip.to_octets()[..], message]);
    nic.send_octets(&octets)
}

/// The replies of ICMP since `mark`, once the device has answered an ARP behind the request.
fn replies(nic: &mut Nic<'_>, mark: usize) -> Check<Vec<Vec<u8>>> {
    nic.packets(mark, 0)?;
    let messages = nic.line.seen[mark..].iter().filter_map(|seen| {
        let body = seen.frame.octets.get(14..)?;
        let ip = Ipv4::parse(body).ok()?;
        let message = body.get(ip.header_len()..usize::from(ip.total_length))?;
        (ip.protocol == ICMP_V4 && ip.source == nic.address).then(|| message.to_vec())
    });
    Ok(messages.collect())
}

fn echoed(nic: &mut Nic<'_>) -> Check {
    for (sequence, length) in (1..).zip([0, 1, 56, 1000]) {
        let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
        let mut wanted = request(sequence, &data);
        let mark = nic.mark();
        ask(nic, &wanted)?;
        let got = replies(nic, mark)?;
        must!(got.len() == 1, "{} replies to an echo of {length} octets", got.len());
        wanted[0] = ECHO_REPLY_V4;
        let is_same = got[0].get(4..) == wanted.get(4..) && got[0][0] == ECHO_REPLY_V4;
        must!(
            is_same && is_intact_v4(&got[0]),
            "the reply to {length} octets is another: {:02x?}",
            got[0]
        );
    }
    Ok("four echoes come back with their octets".to_owned())
}

fn spoiled_echo(nic: &mut Nic<'_>) -> Check {
    let mut message = request(9, &[7; 32]);
    message[2] ^= 0x10;
    let mark = nic.mark();
    ask(nic, &message)?;
    let got = replies(nic, mark)?;
    must!(got.is_empty(), "an echo with a wrong checksum is answered");
    Ok("an echo with a wrong checksum draws nothing".to_owned())
}

/// The next address behind the tester's, which no device has.
fn other_address(nic: &mut Nic<'_>) -> Check {
    let other = Ipv4Addr::from_bits(nic.file.peer.to_bits() + 1);
    let arp =
        Arp::new(ArpOperation::Request, (OWN_MAC, nic.file.peer), (MacAddress::default(), other));
    let mark = nic.mark();
    nic.send_octets(&framed(MacAddress::BROADCAST, ethertype::ARP, &[&arp.to_octets()[..]]))?;
    nic.packets(mark, 0)?;
    let answers = nic.line.seen[mark..].iter().filter(|seen| {
        let arp = seen.frame.octets.get(14..).and_then(|body| Arp::parse(body).ok());
        arp.is_some_and(|arp| arp.operation == ArpOperation::Reply && arp.sender_protocol == other)
    });
    let count = answers.count();
    must!(count == 0, "it answers for {other}, which it does not have");
    Ok("a request for another address draws nothing".to_owned())
}

/// To all nodes, so that it reaches the device.
fn other_target(nic: &mut Nic<'_>) -> Check {
    let own = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xf0);
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let question = Neighbour {
        kind: NEIGHBOUR_SOLICITATION,
        code: 0,
        checksum: 0,
        router: false,
        solicited: false,
        override_entry: false,
        reserved29: 0,
        target: STRANGER,
    };
    let option = LinkAddressOption { kind: LinkAddressOption::SOURCE, words: 1, address: OWN_MAC };
    let mut message = [&question.to_octets()[..], &option.to_octets()[..]].concat();
    seal_v6(&mut message, own, all);
    let ip = Ipv6 {
        ecn: Ecn::NotCapable,
        payload_length: message.len() as u16,
        next_header: ICMP_V6,
        hop_limit: 255,
        source: own,
        destination: all,
        ..Ipv6::default()
    };
    let group = MacAddress::from_number(0x3333_0000_0001);
    let mark = nic.mark();
    nic.send_octets(&framed(group, ethertype::IPV6, &[&ip.to_octets()[..], &message]))?;
    nic.packets(mark, 0)?;
    let answers = nic.line.seen[mark..].iter().filter(|seen| {
        let octets = &seen.frame.octets;
        let is_advertisement = octets.get(14 + Ipv6::LEN) == Some(&NEIGHBOUR_ADVERTISEMENT);
        octets.get(12..14) == Some(&ethertype::IPV6.to_be_bytes()[..]) && is_advertisement
    });
    let count = answers.count();
    must!(count == 0, "it advertises {STRANGER}, or an address that was not asked for");
    Ok("a solicitation for another address draws nothing".to_owned())
}
