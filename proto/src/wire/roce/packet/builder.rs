//! Makes RoCE packets: headers, payload, pad, lengths and all checks in one buffer of the caller's.
//!
//! The ICRC comes first: it covers lengths and counts checksums as ones. UDP's checksum covers the
//! ICRC. Source: IBTA Vol 1, annexes A16 and A17; 9.2 (PadCnt).

use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::envelope::LEAST;
use crate::wire::ethernet::{Envelope, MacAddress, Preface, VlanTag};
use crate::wire::infiniband::envelope::{ICRC_LEN, WORD};
use crate::wire::infiniband::{Bth, ExtendedHeaders, Grh, Opcode};
use crate::wire::internet::{Ipv4, Ipv6, Udp, checksum};
use crate::wire::roce::checks;
use crate::wire::roce::layout::Layout;
use crate::wire::roce::packet::NetworkHeaders;
use bytes::BytesMut;

/// Why a packet cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// Lengths of IP, UDP and GRH have sixteen bits.
    #[error("the packet would have {octets} octets behind its Ethernet header, {max} fit", max = u16::MAX)]
    TooLong {
        /// Octets, network header to ICRC.
        octets: usize,
    },
    /// IHL counts whole words, ten of options at most.
    #[error("{octets} octets of IPv4 options are no words, or more than ten")]
    Options {
        /// Octets of the options given.
        octets: usize,
    },
    /// A reader could not find the payload.
    #[error("the extended headers given are not those of {opcode}")]
    ExtendedHeaders {
        /// The opcode in the BTH.
        opcode: Opcode,
    },
}

/// What a packet says before its payload; everything else is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuilder<'a> {
    /// Destination MAC address on this link.
    pub destination: MacAddress,
    /// Source MAC address.
    pub source: MacAddress,
    /// The VLAN tag, if the frame is to have one; its EtherType is computed.
    pub tag: Option<VlanTag>,
    /// GRH, or IP and UDP; lengths, IHL and checksums are computed. UDP over IPv4 has a checksum only
    /// if the one given is not 0: adapters send none. Over IPv6 it always has one.
    pub network: NetworkHeaders<'a>,
    /// Base Transport Header; its PadCnt is computed.
    pub bth: Bth,
    /// Exactly the headers that the opcode calls for.
    pub extended: ExtendedHeaders,
}

/// The greatest length of a network packet, its header included.
const LENGTH_MAX: usize = u16::MAX as usize;

/// Octets that IHL leaves for options.
const OPTIONS_MAX: usize = 40;

impl PacketBuilder<'_> {
    /// Replaces what `buffer` holds by the frame without FCS, at least 60 octets long. `fill` writes
    /// `payload_length` octets of payload; it is given them as zeros.
    ///
    /// Nothing is allocated if the buffer's capacity suffices.
    ///
    /// # Errors
    /// If the packet is longer than its lengths can say, or has not the headers of its opcode. The
    /// buffer is then as it was.
    pub fn emit(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), EmitError> {
        self.emit_around(buffer, payload_length, |buffer| {
            let payload_at = buffer.len();
            buffer.resize(payload_at + payload_length, 0);
            fill(&mut buffer[payload_at..]);
        })
    }

    /// The same, but `append` puts the payload behind what the buffer holds by then. So no octet of it is
    /// written twice.
    ///
    /// # Errors
    /// As [`PacketBuilder::emit`].
    ///
    /// # Panics
    /// If that are not `payload_length` octets.
    pub fn emit_around(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Result<(), EmitError> {
        let set = self.extended.set();
        if set != self.bth.opcode.extended_headers() {
            return Err(EmitError::ExtendedHeaders { opcode: self.bth.opcode });
        }
        let ethernet = self.envelope();
        let network_at = ethernet.octets_len();
        let bth_at = network_at + self.network.octets_len();
        let payload_at = bth_at + Bth::LEN + set.octets();
        let padded = payload_length.div_ceil(WORD).saturating_mul(WORD);
        let end = padded.saturating_add(payload_at + ICRC_LEN);
        let network = self.network_of(end - network_at)?;

        buffer.clear();
        buffer.reserve(end.max(LEAST));
        buffer.resize(payload_at, 0);
        let octets = &mut buffer[..];
        ethernet.emit(octets);
        network.emit(&mut octets[network_at..]);
        let pad_count = (payload_length.wrapping_neg() % WORD) as u8;
        Bth { pad_count, ..self.bth }.emit(&mut octets[bth_at..]);
        self.extended.emit(&mut octets[bth_at + Bth::LEN..]);
        append(buffer);
        assert_eq!(buffer.len(), payload_at + payload_length, "the payload is as long as was said");
        buffer.resize(end.max(LEAST), 0);
        let (preface, network) = (Preface::untagged(ethernet), network.network());
        let layout = Layout { preface, network, network_at, bth_at, end };
        self.write_checks(buffer, &layout);
        Ok(())
    }

    fn envelope(&self) -> Envelope {
        let plain = Envelope::untagged(self.destination, self.source, self.network.ethertype());
        self.tag.map_or(plain, |tag| plain.tagged(tag))
    }

    /// The network headers of a packet with so many octets, network header to ICRC.
    fn network_of(&self, length: usize) -> Result<NetworkHeaders<'_>, EmitError> {
        if length > LENGTH_MAX {
            return Err(EmitError::TooLong { octets: length });
        }
        let behind = |header: usize| (length - header) as u16;
        Ok(match self.network {
            NetworkHeaders::Global(grh) => {
                NetworkHeaders::Global(Grh { payload_length: behind(Grh::LEN), ..grh })
            }
            NetworkHeaders::Ipv4(ip, options, udp) => {
                if options.len() > OPTIONS_MAX || !options.len().is_multiple_of(WORD) {
                    return Err(EmitError::Options { octets: options.len() });
                }
                let header_len = Ipv4::LEN + options.len();
                let header_words = (header_len / WORD) as u8;
                let ip = Ipv4 { header_words, total_length: behind(0), checksum: 0, ..ip };
                let udp = Udp { length: behind(header_len), checksum: 0, ..udp };
                NetworkHeaders::Ipv4(ip, options, udp)
            }
            NetworkHeaders::Ipv6(ip, udp) => {
                let ip = Ipv6 { payload_length: behind(Ipv6::LEN), ..ip };
                let udp = Udp { length: ip.payload_length, checksum: 0, ..udp };
                NetworkHeaders::Ipv6(ip, udp)
            }
        })
    }

    /// ICRC, then UDP's checksum, which covers it, then IPv4's.
    fn write_checks(&self, octets: &mut [u8], layout: &Layout) {
        let icrc = checks::icrc(octets, layout).to_le_bytes();
        octets[layout.icrc_at()..layout.end].copy_from_slice(&icrc);
        let Some(udp_at) = layout.udp_at() else { return };
        let wants_checksum = match self.network {
            NetworkHeaders::Ipv4(_, _, udp) => udp.checksum != 0,
            _ => true,
        };
        if let Some(checksum) = checks::udp_checksum(octets, layout).filter(|_| wants_checksum) {
            octets[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
        }
        if layout.network == Network::Ipv4 {
            let header = &mut octets[layout.network_at..udp_at];
            let checksum = checksum::ipv4_header(header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}
