//! What a sender's stack has left for hardware to do, done here: checksums and segments.
//!
//! A socket with PACKET_VNET_HDR has ten octets before each frame that say what is unfinished. A veth
//! is hardware that does nothing, so this is what any interface of its kind would do.
//! Source: the virtio specification 1.2, 5.1.6 (struct virtio_net_hdr); numbers in host order.

use proto::wire::internet::checksum;

/// Octets of the header.
const LENGTH: usize = 10;
/// Octets of the addresses and the EtherType.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 20;
const UDP: usize = 8;

/// The header before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioHeader {
    /// Its checksum is only begun.
    needs_checksum: bool,
    /// How it is to be cut.
    cut: u8,
    /// Octets of payload of each segment.
    segment: usize,
    /// From here on octets are under the checksum.
    checksum_start: usize,
    /// And its place, from there.
    checksum_at: usize,
}

/// Values of `cut`, without the mark for ECN.
mod cut {
    pub const NOT: u8 = 0;
    pub const TCP_IPV4: u8 = 1;
    pub const TCP_IPV6: u8 = 4;
    pub const UDP: u8 = 5;
    pub const ECN: u8 = 0x80;
}

/// The frame needs what is not known here, or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl VirtioHeader {
    /// Before a frame to which nothing need be done.
    pub const FINISHED: [u8; LENGTH] = [0; LENGTH];

    fn parse(octets: &[u8; LENGTH]) -> VirtioHeader {
        const NEEDS_CHECKSUM: u8 = 1;
        let number = |at: usize| usize::from(u16::from_ne_bytes([octets[at], octets[at + 1]]));
        VirtioHeader {
            needs_checksum: octets[0] & NEEDS_CHECKSUM != 0,
            cut: octets[1] & !cut::ECN,
            segment: number(4),
            checksum_start: number(6),
            checksum_at: number(8),
        }
    }
}

/// Takes the header off `octets` and hands on the finished frame, or the frames it has to be cut into,
/// put together in `room`.
///
/// # Errors
/// If it is not known how.
pub fn finish(
    octets: &[u8],
    room: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), Unknown> {
    let (header, frame) = octets.split_first_chunk::<LENGTH>().ok_or(Unknown)?;
    let header = VirtioHeader::parse(header);
    match header.cut {
        cut::NOT if !header.needs_checksum => each(frame),
        cut::NOT => {
            room.clear();
            room.extend_from_slice(frame);
            complete(room, header.checksum_start, header.checksum_at)?;
            each(room);
        }
        cut::TCP_IPV4 | cut::TCP_IPV6 | cut::UDP => {
            Segments::of(frame, &header)?.make(room, each)?;
        }
        _ => return Err(Unknown),
    }
    Ok(())
}

/// Completes the checksum of what begins at `start`.
fn complete(frame: &mut [u8], start: usize, at: usize) -> Result<(), Unknown> {
    let under = frame.get_mut(start..).ok_or(Unknown)?;
    let sum = match checksum::completed(under) {
        // UDP over either version of IP: 0 would say that there is none. To TCP both zeros are one.
        0 => 0xffff,
        sum => sum,
    };
    let place = under.get_mut(at..at + 2).ok_or(Unknown)?;
    place.copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// A frame of one large payload, taken apart.
struct Segments<'a> {
    /// Everything before the payload.
    headers: &'a [u8],
    payload: &'a [u8],
    /// Where the IP header begins.
    network: usize,
    is_ipv6: bool,
    /// Where the header of TCP or UDP begins.
    transport: usize,
    is_tcp: bool,
    /// Octets of payload a segment.
    length: usize,
}

impl<'a> Segments<'a> {
    fn of(frame: &'a [u8], header: &VirtioHeader) -> Result<Segments<'a>, Unknown> {
        let network = network_header(frame).ok_or(Unknown)?;
        let is_ipv6 = frame.get(network).ok_or(Unknown)? >> 4 == 6;
        let transport = header.checksum_start;
        let is_tcp = header.cut != cut::UDP;
        let least = network + if is_ipv6 { IPV6 } else { IPV4 };
        let own = if is_tcp {
            usize::from(frame.get(transport + 12).ok_or(Unknown)? >> 4) * 4
        } else {
            UDP
        };
        let tcp_is_whole = !is_tcp || own >= TCP;
        let payload = frame.get(transport + own..).ok_or(Unknown)?;
        if !header.needs_checksum || transport < least || !tcp_is_whole || header.segment == 0 {
            return Err(Unknown);
        }
        let headers = &frame[..transport + own];
        Ok(Segments {
            headers,
            payload,
            network,
            is_ipv6,
            transport,
            is_tcp,
            length: header.segment,
        })
    }

    fn make(&self, room: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> Result<(), Unknown> {
        let count = self.payload.len().div_ceil(self.length);
        for (number, payload) in self.payload.chunks(self.length).enumerate() {
            room.clear();
            room.extend_from_slice(self.headers);
            room.extend_from_slice(payload);
            self.mend_network(room, number);
            let is_last = number + 1 == count;
            if self.is_tcp {
                self.mend_tcp(room, number, is_last);
            } else {
                let length = (room.len() - self.transport) as u16;
                put(room, self.transport + 4, length);
            }
            let at = if self.is_tcp { 16 } else { 6 };
            let sum = self.begun(room);
            put(room, self.transport + at, sum);
            complete(room, self.transport, at)?;
            each(room);
        }
        Ok(())
    }

    /// Lengths, and for IPv4 the identification and the checksum.
    fn mend_network(&self, frame: &mut [u8], number: usize) {
        let at = self.network;
        if self.is_ipv6 {
            return put(frame, at + 4, (frame.len() - at - IPV6) as u16);
        }
        put(frame, at + 2, (frame.len() - at) as u16);
        let identification = u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
        put(frame, at + 4, identification.wrapping_add(number as u16));
        let sum = checksum::ipv4_header(&frame[at..self.transport]);
        put(frame, at + 10, sum);
    }

    /// Every segment but the last goes on: no FIN, no PSH. Only the first says CWR (RFC 3168, 6.1.2).
    fn mend_tcp(&self, frame: &mut [u8], number: usize, is_last: bool) {
        const FIN: u8 = 0x01;
        const PSH: u8 = 0x08;
        const CWR: u8 = 0x80;
        let tcp = &mut frame[self.transport..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let sequence = sequence.wrapping_add((number * self.length) as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if !is_last {
            tcp[13] &= !(FIN | PSH);
        }
        if number > 0 {
            tcp[13] &= !CWR;
        }
    }

    /// The sum of the pseudo-header.
    fn begun(&self, frame: &[u8]) -> u16 {
        const TCP_NUMBER: u8 = 6;
        const UDP_NUMBER: u8 = 17;
        let (from, to) = if self.is_ipv6 { (8, IPV6) } else { (12, IPV4) };
        let addresses = &frame[self.network + from..self.network + to];
        let protocol = if self.is_tcp { TCP_NUMBER } else { UDP_NUMBER };
        checksum::begun(addresses, protocol, frame.len() - self.transport)
    }
}

fn put(frame: &mut [u8], at: usize, number: u16) {
    frame[at..at + 2].copy_from_slice(&number.to_be_bytes());
}

/// Where the IP header of a frame begins, behind any tags.
fn network_header(frame: &[u8]) -> Option<usize> {
    let mut at = ETHERNET - 2;
    for _ in 0..3 {
        match frame.get(at..at + 2)? {
            [0x08, 0x00] | [0x86, 0xdd] => return Some(at + 2),
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// TCP from 198.18.0.1 to .2 or 2001:db8::1 to ::2: FIN, PSH, ACK and CWR, 12 octets of options.
    fn tcp(is_ipv6: bool, payload: usize) -> (Vec<u8>, usize) {
        let mut frame = vec![2; 12];
        let length = 32 + payload;
        if is_ipv6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([6, 64]);
            for last in [1, 2] {
                frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + length as u16).to_be_bytes());
            frame.extend([0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        }
        let transport = frame.len();
        frame.extend([0x14, 0x51, 0x9c, 0x40, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9]);
        frame.extend([0x80, 0x99, 1, 0, 0, 0, 0, 0]);
        frame.extend([1; 12]);
        frame.extend((0..payload).map(|octet| octet as u8));
        (frame, transport)
    }

    fn with_header(cut: u8, segment: usize, start: usize, at: usize, frame: &[u8]) -> Vec<u8> {
        let mut octets = vec![1, cut, 0, 0];
        for number in [segment, start, at] {
            octets.extend((number as u16).to_ne_bytes());
        }
        octets.extend_from_slice(frame);
        octets
    }

    fn finished(octets: &[u8]) -> Result<Vec<Vec<u8>>, Unknown> {
        let mut frames = Vec::new();
        finish(octets, &mut Vec::new(), |frame| frames.push(frame.to_vec())).map(|()| frames)
    }

    /// The ones' complement of all words under a right checksum, pseudo-header included, is 0.
    fn assert_checksums(frame: &[u8], is_ipv6: bool, transport: usize) {
        let (from, to) = if is_ipv6 { (22, 54) } else { (26, 34) };
        let pseudo = checksum::begun(&frame[from..to], 6, frame.len() - transport);
        let mut all = pseudo.to_be_bytes().to_vec();
        all.extend_from_slice(&frame[transport..]);
        assert_eq!(checksum::completed(&all), 0);
        if !is_ipv6 {
            assert_eq!(checksum::completed(&frame[14..34]), 0);
        }
    }

    #[test]
    fn a_large_segment_is_cut_into_those_that_a_sender_would_have_made() {
        for (is_ipv6, cut) in [(false, cut::TCP_IPV4 | cut::ECN), (true, cut::TCP_IPV6)] {
            let (frame, transport) = tcp(is_ipv6, 3_001);
            let octets = with_header(cut, 1_448, transport, 16, &frame);
            let segments = finished(&octets).expect("TCP is known");
            let payload = transport + 32;
            let lengths: Vec<_> = segments.iter().map(|segment| segment.len() - payload).collect();
            assert_eq!(lengths, [1_448, 1_448, 105]);
            let flags: Vec<_> = segments.iter().map(|segment| segment[transport + 13]).collect();
            assert_eq!(flags, [0x90, 0x10, 0x19]);
            let joined: Vec<u8> =
                segments.iter().flat_map(|segment| segment[payload..].to_vec()).collect();
            assert_eq!(joined, frame[payload..]);
            for (number, segment) in segments.iter().enumerate() {
                assert_checksums(segment, is_ipv6, transport);
                let sequence = segment[transport + 4..transport + 8].try_into().expect("four");
                let expected = 0xffff_fff0_u32.wrapping_add(1_448 * number as u32);
                assert_eq!(u32::from_be_bytes(sequence), expected);
                let said = if is_ipv6 {
                    usize::from(u16::from_be_bytes([segment[18], segment[19]])) + 54
                } else {
                    usize::from(u16::from_be_bytes([segment[16], segment[17]])) + 14
                };
                assert_eq!(said, segment.len());
            }
            if !is_ipv6 {
                let ids: Vec<_> =
                    segments.iter().map(|segment| [segment[18], segment[19]]).collect();
                assert_eq!(ids, [[0xff, 0xff], [0, 0], [0, 1]]);
            }
        }
    }

    #[test]
    fn a_checksum_that_was_begun_is_completed_and_what_is_whole_is_left_alone() {
        let (mut frame, transport) = tcp(false, 100);
        let whole = [&VirtioHeader::FINISHED[..], &frame].concat();
        assert_eq!(finished(&whole), Ok(vec![frame.clone()]));
        let sum = checksum::begun(&frame[26..34], 6, frame.len() - transport);
        put(&mut frame, transport + 16, sum);
        let header = checksum::ipv4_header(&frame[14..34]);
        put(&mut frame, 24, header);
        let octets = with_header(cut::NOT, 0, transport, 16, &frame);
        let [completed] = &finished(&octets).expect("a checksum")[..] else { panic!("one frame") };
        assert_checksums(completed, false, transport);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(
            header: [u8; 10], frame in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut octets = header.to_vec();
            octets[1] %= 8;
            octets.extend(frame);
            let _ = finished(&octets);
        }

        #[test]
        fn nor_do_cut_frames_of_tcp(
            is_ipv6: bool, end in 0usize..160, segment in 0usize..300, start in 0usize..80,
        ) {
            let (frame, _) = tcp(is_ipv6, 60);
            let cut = if is_ipv6 { cut::TCP_IPV6 } else { cut::TCP_IPV4 };
            let end = end.min(frame.len());
            let _ = finished(&with_header(cut, segment, start, 16, &frame[..end]));
        }
    }
}
