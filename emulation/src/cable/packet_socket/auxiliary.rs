//! Control data beside a received frame: its 802.1Q tag and its time stamp.

use std::mem::MaybeUninit;

/// An 802.1Q tag: the four octets behind the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Its EtherType, 81-00 or 88-A8.
    pub tpid: u16,
    /// Priority code point, drop eligible indicator and VLAN identifier.
    pub tci: u16,
}

impl VlanTag {
    /// The octets of the tag in a frame.
    pub fn octets(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.tpid.to_be_bytes(), self.tci.to_be_bytes());
        [a, b, c, d]
    }
}

/// Buffer for the control messages of one frame: auxiliary data of 20 octets and a time stamp of 16, each with
/// a header.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Control([MaybeUninit<u8>; 128]);

impl Default for Control {
    fn default() -> Control {
        Control([MaybeUninit::zeroed(); 128])
    }
}

/// The control data of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Auxiliary {
    /// The tag that the kernel took out.
    pub tag: Option<VlanTag>,
    /// Time stamp, in nanoseconds of `CLOCK_REALTIME`.
    pub at_ns: Option<u64>,
}

impl Auxiliary {
    /// Parses the control data that `recvmmsg` left in `header`.
    pub fn of(header: &libc::msghdr) -> Auxiliary {
        let mut auxiliary = Auxiliary::default();
        // SAFETY: the caller's header holds the pointer and length of control data that the kernel
        // has just written; the macros stay within that length. Test: frames_come_out_as_they_went_in_tags_and_all.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: `message` is not null, so the macros gave a whole, aligned control header.
            // Test: frames_come_out_as_they_went_in_tags_and_all.
            let (level, kind, data) =
                unsafe { ((*message).cmsg_level, (*message).cmsg_type, libc::CMSG_DATA(message)) };
            match (level, kind) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    // SAFETY: the kernel puts a whole `tpacket_auxdata` behind this header.
                    // Test: frames_come_out_as_they_went_in_tags_and_all.
                    let data: libc::tpacket_auxdata =
                        unsafe { std::ptr::read_unaligned(data.cast()) };
                    auxiliary.tag = tag(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: the kernel puts a whole `timespec` behind this header.
                    // Test: frames_come_out_as_they_went_in_tags_and_all.
                    let time: libc::timespec = unsafe { std::ptr::read_unaligned(data.cast()) };
                    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                    auxiliary.at_ns = Some(seconds * 1_000_000_000 + time.tv_nsec as u64);
                }
                _ => {}
            }
            // SAFETY: as for the first. Test: frames_come_out_as_they_went_in_tags_and_all.
            message = unsafe { libc::CMSG_NXTHDR(header, message) };
        }
        auxiliary
    }
}

/// The tag that the kernel's status describes, if there is one.
pub fn tag(status: u32, tpid: u16, tci: u16) -> Option<VlanTag> {
    let has = |flag| status & flag != 0;
    has(libc::TP_STATUS_VLAN_VALID).then(|| VlanTag {
        tpid: if has(libc::TP_STATUS_VLAN_TPID_VALID) { tpid } else { 0x8100 },
        tci,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control data as `recvmmsg` leaves them: the header and the data of each message, at their alignment.
    fn control(messages: &[(i32, i32, &[u8])]) -> Vec<u64> {
        let mut octets = Vec::new();
        for (level, kind, data) in messages {
            let length = size_of::<libc::cmsghdr>() + data.len();
            octets.extend(length.to_ne_bytes());
            octets.extend(level.to_ne_bytes());
            octets.extend(kind.to_ne_bytes());
            octets.extend_from_slice(data);
            octets.resize(octets.len().next_multiple_of(8), 0);
        }
        let words = octets.chunks_exact(8).map(|word| word.try_into().expect("eight octets"));
        words.map(u64::from_ne_bytes).collect()
    }

    #[test]
    fn a_tag_and_a_time_stand_between_messages_of_no_interest() {
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        // Status, two lengths, two offsets, TCI and TPID of `tpacket_auxdata`.
        let words = [status, 60, 60].map(u32::to_ne_bytes).concat();
        let tail = [14u16, 34, 0x6005, 0x88a8].map(u16::to_ne_bytes).concat();
        let tagged = [words, tail].concat();
        let time = [7u64, 999_999_999].map(u64::to_ne_bytes).concat();
        let mut control = control(&[
            (libc::SOL_SOCKET, libc::SCM_RIGHTS, &[1, 2, 3, 4]),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, &tagged),
            (libc::SOL_IP, libc::IP_TTL, &[64]),
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time),
        ]);
        // SAFETY: plain data, for which all zeros is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        assert_eq!(Auxiliary::of(&header), Auxiliary::default(), "no control data");
        header.msg_controllen = size_of_val(&control[..]);
        header.msg_control = control.as_mut_ptr().cast();
        let tag = Some(VlanTag { tpid: 0x88a8, tci: 0x6005 });
        assert_eq!(Auxiliary::of(&header), Auxiliary { tag, at_ns: Some(7_999_999_999) });
    }
}
