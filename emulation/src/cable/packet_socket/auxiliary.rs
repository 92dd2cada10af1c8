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
