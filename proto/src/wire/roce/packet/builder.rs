//! Builds RoCE packets: headers, payload, pad, lengths and all checks in a buffer of the caller.
//!
//! The ICRC is computed first: it covers lengths and counts checksums as ones. The UDP checksum covers the
//! ICRC. Source: IBTA Vol 1, annexes A16 and A17; 9.2 (PadCnt).

use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::envelope::LEAST;
use crate::wire::ethernet::{Envelope, MacAddress, Preface, VlanTag};
use crate::wire::infiniband::envelope::WORD;
use crate::wire::infiniband::transport::{TransportPlan, zeroed};
use crate::wire::infiniband::{Bth, ExtendedHeaders, Grh, Opcode};
use crate::wire::internet::{Ipv4, Ipv6, Udp, checksum};
use crate::wire::roce::{Layout, NetworkHeaders, checks};
use bytes::BytesMut;

/// Error of building a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The packet is longer than the 16-bit lengths of IP, UDP and GRH can express.
    #[error("the packet would have {octets} octets behind its Ethernet header, {max} fit", max = u16::MAX)]
    TooLong {
        /// Length in octets, network header to ICRC.
        octets: usize,
    },
    /// The IPv4 options are not whole words, or more than ten words.
    #[error("{octets} octets of IPv4 options are not whole words of four, or more than ten words")]
    Options {
        /// Length of the options, in octets.
        octets: usize,
    },
    /// The extended headers do not match the opcode, so a receiver could not find the payload.
    #[error("the extended headers given are not those of {opcode}")]
    ExtendedHeaders {
        /// The opcode in the BTH.
        opcode: Opcode,
    },
}

/// The header fields of a packet. Lengths and checks are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuilder<'a> {
    /// Destination MAC address on this link.
    pub destination: MacAddress,
    /// Source MAC address.
    pub source: MacAddress,
    /// The VLAN tag, if any; its next EtherType is computed.
    pub tag: Option<VlanTag>,
    /// GRH, or IP and UDP; lengths, IHL and checksums are computed. UDP over IPv4 gets a checksum only if the
    /// given one is not 0, because adapters send none. UDP over IPv6 always gets one.
    pub network: NetworkHeaders<'a>,
    /// Base Transport Header; its PadCnt is computed.
    pub bth: Bth,
    /// Exactly the extended headers of the opcode.
    pub extended: ExtendedHeaders,
}

/// Maximum length of a network packet with its header, in octets.
const LENGTH_MAX: usize = u16::MAX as usize;

/// Maximum length of IPv4 options, in octets.
const OPTIONS_MAX: usize = 40;

impl PacketBuilder<'_> {
    /// Replaces the contents of `buffer` by the frame without FCS, padded to at least 60 octets. `fill` receives
    /// `payload_length` zeroed octets and writes the payload to them.
    ///
    /// Nothing is allocated if the buffer's capacity suffices.
    ///
    /// # Errors
    /// If the packet is longer than its length fields can express, or the extended headers do not match the opcode.
    /// The buffer is then unchanged.
    pub fn emit(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), EmitError> {
        self.emit_around(buffer, payload_length, zeroed(payload_length, fill))
    }

    /// As [`PacketBuilder::emit`], but `append` appends the payload to the buffer, so that no octet of it is
    /// written twice.
    ///
    /// # Errors
    /// As [`PacketBuilder::emit`].
    ///
    /// # Panics
    /// If `append` does not write exactly `payload_length` octets.
    pub fn emit_around(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Result<(), EmitError> {
        let (plan, layout) = self.plan(payload_length)?;
        plan.emit(buffer, plan.end.max(LEAST), |octets| self.lower(octets, &layout), append);
        checks::refresh(buffer, &layout);
        Ok(())
    }

    /// Replaces the contents of `buffer` by the headers alone, addresses to extended headers, of a packet with
    /// `payload_length` octets of payload. There is room for `more` octets behind them. The UDP checksum, which covers the
    /// payload, is 0 if the packet is to have none, and not yet right otherwise.
    ///
    /// # Errors
    /// As [`PacketBuilder::emit`].
    pub fn emit_headers(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        more: usize,
    ) -> Result<(), EmitError> {
        let (plan, layout) = self.plan(payload_length)?;
        plan.emit_headers(buffer, plan.payload_at + more, |octets| self.lower(octets, &layout));
        Ok(())
    }

    fn plan(&self, payload_length: usize) -> Result<(TransportPlan<'_>, Layout), EmitError> {
        let ethernet = self.envelope();
        let network_at = ethernet.octets_len();
        let bth_at = network_at + self.network.octets_len();
        let plan = TransportPlan::new(&self.bth, &self.extended, bth_at, payload_length)
            .ok_or(EmitError::ExtendedHeaders { opcode: self.bth.opcode })?;
        let end = plan.end;
        self.check_length(end - network_at)?;
        let (preface, network) = (Preface::untagged(ethernet), self.network.network());
        Ok((plan, Layout { preface, network, network_at, bth_at, end }))
    }

    /// Writes the headers before the BTH. Where there is to be a UDP checksum, its octets are not 0.
    fn lower(&self, octets: &mut [u8], layout: &Layout) {
        let Layout { preface, network_at, .. } = *layout;
        preface.emit(octets);
        self.network_of(layout.end - network_at).emit(&mut octets[network_at..]);
        if let (Network::Ipv4, Some(udp_at)) = (layout.network, layout.udp_at()) {
            let header = &mut octets[network_at..udp_at];
            let checksum = checksum::ipv4_header(header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    fn envelope(&self) -> Envelope {
        let plain = Envelope::untagged(self.destination, self.source, self.network.ethertype());
        self.tag.map_or(plain, |tag| plain.tagged(tag))
    }

    /// Checks the length of the packet, network header to ICRC, and that of options.
    fn check_length(&self, octets: usize) -> Result<(), EmitError> {
        if octets > LENGTH_MAX {
            return Err(EmitError::TooLong { octets });
        }
        match self.network {
            NetworkHeaders::Ipv4(_, options, _)
                if options.len() > OPTIONS_MAX || !options.len().is_multiple_of(WORD) =>
            {
                Err(EmitError::Options { octets: options.len() })
            }
            _ => Ok(()),
        }
    }

    /// The network headers of a packet with `length` octets, network header to ICRC.
    fn network_of(&self, length: usize) -> NetworkHeaders<'_> {
        let behind = |header: usize| (length - header) as u16;
        match self.network {
            NetworkHeaders::Global(grh) => {
                NetworkHeaders::Global(Grh { payload_length: behind(Grh::LEN), ..grh })
            }
            NetworkHeaders::Ipv4(ip, options, udp) => {
                let header_len = Ipv4::LEN + options.len();
                let header_words = (header_len / WORD) as u8;
                let ip = Ipv4 { header_words, total_length: behind(0), checksum: 0, ..ip };
                NetworkHeaders::Ipv4(ip, options, Udp { length: behind(header_len), ..udp })
            }
            NetworkHeaders::Ipv6(ip, udp) => {
                let ip = Ipv6 { payload_length: behind(Ipv6::LEN), ..ip };
                let udp = Udp { length: ip.payload_length, checksum: u16::MAX, ..udp };
                NetworkHeaders::Ipv6(ip, udp)
            }
        }
    }
}
