//! Finishes frames whose checksums or segmentation the sender's stack left to hardware.
//!
//! A socket with PACKET_VNET_HDR has ten octets before each frame that describe the unfinished work. A veth interface has no
//! hardware, so this does what the network card of its peer would do.
//! Source: virtio 1.2, 5.1.6 (struct virtio_net_hdr); its numbers are in host order.

use etherparse::{IpHeaders, LaxPacketHeaders, NetHeaders, TransportHeader};
use proto::wire::internet::checksum;

/// Octets of the header.
const LENGTH: usize = 10;

/// The header before a frame. Read by hand: no published crate has a view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VirtioHeader {
    /// The checksum covers the pseudo-header only.
    needs_checksum: bool,
    /// How the frame is to be segmented, one of [`gso`].
    gso_type: u8,
    /// Octets of payload of each segment.
    gso_size: usize,
    /// The checksum covers the frame from this octet on.
    checksum_start: usize,
    /// Place of the checksum, from `checksum_start`.
    checksum_offset: usize,
}

/// Values of `gso_type`, without the flag for ECN.
mod gso {
    pub const NONE: u8 = 0;
    pub(crate) const TCP_IPV4: u8 = 1;
    pub(crate) const TCP_IPV6: u8 = 4;
    pub const UDP: u8 = 5;
    pub const ECN: u8 = 0x80;
}

/// The frame needs an offload that is not implemented, or contradicts its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl VirtioHeader {
    /// The header of a finished frame.
    pub(crate) const FINISHED: [u8; LENGTH] = [0; LENGTH];

    fn parse(octets: &[u8; LENGTH]) -> VirtioHeader {
        const NEEDS_CHECKSUM: u8 = 1;
        let number = |at: usize| usize::from(u16::from_ne_bytes([octets[at], octets[at + 1]]));
        VirtioHeader {
            needs_checksum: octets[0] & NEEDS_CHECKSUM != 0,
            gso_type: octets[1] & !gso::ECN,
            gso_size: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        }
    }
}

/// Removes the header from `octets` and hands the finished frame to `each`, or the segments of it, which are assembled
/// in `room`.
///
/// # Errors
/// If the frame needs an offload that is not implemented.
pub fn finish(
    octets: &[u8],
    room: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), Unknown> {
    let (header, frame) = octets.split_first_chunk::<LENGTH>().ok_or(Unknown)?;
    let header = VirtioHeader::parse(header);
    match header.gso_type {
        gso::NONE if !header.needs_checksum => each(frame),
        gso::NONE => {
            room.clear();
            room.extend_from_slice(frame);
            complete(room, header.checksum_start, header.checksum_offset)?;
            each(room);
        }
        _ => Segments::of(frame, &header)?.make(room, each)?,
    }
    Ok(())
}

/// Completes the checksum of what begins at `start`. Offsets as the kernel gives them: no header is parsed, since any
/// protocol may be there.
fn complete(frame: &mut [u8], start: usize, at: usize) -> Result<(), Unknown> {
    let under = frame.get_mut(start..).ok_or(Unknown)?;
    let sum = match checksum::completed(under) {
        // In UDP 0 means that there is no checksum; to TCP 0 and 0xffff are the same (RFC 768, RFC 1071).
        0 => 0xffff,
        sum => sum,
    };
    let place = under.get_mut(at..at + 2).ok_or(Unknown)?;
    place.copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// A frame with one large payload, taken apart.
struct Segments<'a> {
    /// Addresses, tags and EtherType.
    link: &'a [u8],
    ip: IpHeaders,
    transport: TransportHeader,
    payload: &'a [u8],
    /// Octets of payload of each segment.
    size: usize,
}

impl<'a> Segments<'a> {
    fn of(frame: &'a [u8], header: &VirtioHeader) -> Result<Segments<'a>, Unknown> {
        let headers = LaxPacketHeaders::from_ethernet(frame).map_err(|_| Unknown)?;
        let ip = match headers.net.ok_or(Unknown)? {
            NetHeaders::Ipv4(header, extensions) => IpHeaders::Ipv4(header, extensions),
            NetHeaders::Ipv6(header, extensions) => IpHeaders::Ipv6(header, extensions),
            NetHeaders::Arp(_) => return Err(Unknown),
        };
        let transport = headers.transport.ok_or(Unknown)?;
        match (header.gso_type, &transport, &ip) {
            (gso::TCP_IPV4, TransportHeader::Tcp(_), IpHeaders::Ipv4(..))
            | (gso::TCP_IPV6, TransportHeader::Tcp(_), IpHeaders::Ipv6(..))
            | (gso::UDP, TransportHeader::Udp(_), _) => {}
            _ => return Err(Unknown),
        }
        let network = header.checksum_start.checked_sub(ip.header_len()).ok_or(Unknown)?;
        let link = frame.get(..network).ok_or(Unknown)?;
        let payload = frame.get(header.checksum_start + transport.header_len()..).ok_or(Unknown)?;
        if !header.needs_checksum || header.gso_size == 0 {
            return Err(Unknown);
        }
        Ok(Segments { link, ip, transport, payload, size: header.gso_size })
    }

    fn make(&self, room: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> Result<(), Unknown> {
        let count = self.payload.len().div_ceil(self.size);
        for (number, payload) in self.payload.chunks(self.size).enumerate() {
            self.segment(room, number, payload, number + 1 == count).ok_or(Unknown)?;
            each(room);
        }
        Ok(())
    }

    /// Assembles segment `number`. Only the last carries FIN and PSH, only the first CWR (RFC 3168, 6.1.2).
    fn segment(&self, room: &mut Vec<u8>, number: usize, payload: &[u8], last: bool) -> Option<()> {
        let (mut ip, mut transport) = (self.ip.clone(), self.transport.clone());
        match &mut transport {
            TransportHeader::Tcp(tcp) => {
                let offset = (number * self.size) as u32;
                tcp.sequence_number = tcp.sequence_number.wrapping_add(offset);
                tcp.fin &= last;
                tcp.psh &= last;
                tcp.cwr &= number == 0;
            }
            TransportHeader::Udp(udp) => udp.length = (udp.header_len() + payload.len()) as u16,
            _ => return None,
        }
        ip.set_payload_len(transport.header_len() + payload.len()).ok()?;
        match &mut ip {
            IpHeaders::Ipv4(header, _) => {
                header.identification = header.identification.wrapping_add(number as u16);
                transport.update_checksum_ipv4(header, payload).ok()?;
            }
            IpHeaders::Ipv6(header, _) => transport.update_checksum_ipv6(header, payload).ok()?,
        }
        room.clear();
        room.extend_from_slice(self.link);
        ip.write(room).ok()?;
        transport.write(room).ok()?;
        room.extend_from_slice(payload);
        Some(())
    }
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

    fn with_header(gso_type: u8, segment: usize, start: usize, at: usize, frame: &[u8]) -> Vec<u8> {
        let mut octets = vec![1, gso_type, 0, 0];
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
        for (is_ipv6, gso_type) in [(false, gso::TCP_IPV4 | gso::ECN), (true, gso::TCP_IPV6)] {
            let (frame, transport) = tcp(is_ipv6, 3_001);
            let octets = with_header(gso_type, 1_448, transport, 16, &frame);
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
                let length = if is_ipv6 {
                    usize::from(u16::from_be_bytes([segment[18], segment[19]])) + 54
                } else {
                    usize::from(u16::from_be_bytes([segment[16], segment[17]])) + 14
                };
                assert_eq!(length, segment.len());
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
        frame[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        let header = checksum::ipv4_header(&frame[14..34]);
        frame[24..26].copy_from_slice(&header.to_be_bytes());
        let octets = with_header(gso::NONE, 0, transport, 16, &frame);
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
            let gso_type = if is_ipv6 { gso::TCP_IPV6 } else { gso::TCP_IPV4 };
            let end = end.min(frame.len());
            let _ = finished(&with_header(gso_type, segment, start, 16, &frame[..end]));
        }
    }
}
