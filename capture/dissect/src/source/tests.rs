//! Hex as people paste it, lines that are none, and captures that end badly.

use super::*;

#[derive(Default)]
pub struct Seen {
    pub frames: Vec<(u64, Technology, Vec<u8>)>,
    wire_lengths: Vec<usize>,
    pub complaints: Vec<String>,
}

impl Visitor for Seen {
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()> {
        self.frames.push((packet.meta.number, packet.meta.technology, packet.octets.to_vec()));
        self.wire_lengths.push(packet.meta.wire_length);
        Ok(())
    }

    fn unreadable(&mut self, what: &str) {
        self.complaints.push(what.to_owned());
    }
}

pub fn seen(input: &[u8], link: Option<Technology>) -> Seen {
    let mut seen = Seen::default();
    visit(input, link, &mut seen).expect("nothing to complain of the visitor");
    seen
}

#[test]
fn hex_is_read_as_people_write_it() {
    for line in [
        "10000080 50d5",
        "10:00:00:80:50:d5",
        "0x1000008050D5 # a comment",
        "0x10, 0x00,0x00 0x80 0x50 0xd5",
        "10-00-00-80-50-D5\r",
    ] {
        let seen = seen(format!("\n# nothing\n{line}\n").as_bytes(), None);
        assert_eq!(seen.complaints, [""; 0], "{line}");
        assert_eq!(
            seen.frames,
            [(1, Technology::Infiniband, vec![0x10, 0, 0, 0x80, 0x50, 0xd5])],
            "{line}"
        );
    }
}

#[test]
fn a_bad_line_is_named_and_the_rest_goes_on() {
    let seen = seen(b"00\n0g\n\n123\n1 2\n0x\nff", Some(Technology::Ethernet));
    let frames = [(1, Technology::Ethernet, vec![0]), (5, Technology::Ethernet, vec![0xff])];
    assert_eq!(seen.frames, frames);
    assert_eq!(
        seen.complaints,
        [
            "line 2: column 2: 'g' is not a hexadecimal digit",
            "line 4: an odd number of digits",
            "line 5: column 2: a digit is missing, an octet has two",
        ]
    );
}

#[test]
fn a_line_without_an_end_is_neither_kept_nor_taken_for_a_frame() {
    let mut text = vec![b'0'; 3 * LINE_MAX];
    text.extend(b"\n0102\n");
    let seen = seen(&text, None);
    assert_eq!(seen.complaints, [format!("line 1: longer than {LINE_MAX} characters")]);
    assert_eq!(seen.frames, [(2, Technology::Infiniband, vec![1, 2])]);
}

/// A pcap of one packet of six octets.
fn pcap(link_type: u32, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let words = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, link_type, 1, 2, 6, 6];
    let mut file: Vec<u8> = words.into_iter().flat_map(order).collect();
    file.extend([1, 2, 3, 4, 5, 6]);
    file
}

#[test]
fn captures_of_either_order_are_told_from_hex_by_their_first_octets() {
    for order in [u32::to_be_bytes, u32::to_le_bytes] {
        for (link_type, link) in [
            (1, Technology::Ethernet),
            (147, Technology::Infiniband),
            (247, Technology::Infiniband),
        ] {
            let seen = seen(&pcap(link_type, order), None);
            assert_eq!(seen.complaints, [""; 0]);
            assert_eq!(seen.frames, [(1, link, vec![1, 2, 3, 4, 5, 6])]);
        }
    }
}

#[test]
fn what_a_capture_has_of_unknown_type_is_named_unless_the_user_knows() {
    let file = pcap(105, u32::to_be_bytes);
    let passed = ["1 packet passed over: link type 105 (--link says what it holds)"];
    assert_eq!(seen(&file, None).complaints, passed);
    assert_eq!(seen(&file, Some(Technology::Ethernet)).frames.len(), 1);
}

#[test]
fn a_capture_that_ends_in_the_middle_is_read_to_there() {
    let mut file = pcap(1, u32::to_le_bytes);
    file.extend([9; 5]);
    let seen = seen(&file, None);
    assert_eq!(seen.frames.len(), 1);
    assert_eq!(seen.complaints, ["after packet 1: ends in the middle of a record header"]);
}

/// A pcapng of one interface and a packet of six octets, numbers in the order of `put`.
fn pcapng(put: fn(u32) -> [u8; 4]) -> Vec<u8> {
    // A link type takes the first half of its word.
    let ethernet = if put(1)[0] == 1 { 1 } else { 1 << 16 };
    let words = [
        [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 0x0001_0001, u32::MAX, u32::MAX, 28].as_slice(),
        &[1, 20, ethernet, 0, 20],
        &[6, 40, 0, 0, 0, 6, 6],
    ];
    let mut file: Vec<u8> = words.concat().into_iter().flat_map(put).collect();
    file.extend([1, 2, 3, 4, 5, 6, 0, 0]);
    file.extend(put(40));
    file
}

#[test]
fn what_is_there_of_a_torn_packet_is_shown() {
    for order in [u32::to_be_bytes, u32::to_le_bytes] {
        let records = pcap(1, order);
        let blocks = pcapng(order);
        assert_eq!(seen(&blocks, None).frames, seen(&records, None).frames);
        for (file, behind) in [(records, 0), (blocks, 6)] {
            for there in 1..6 {
                let seen = seen(&file[..file.len() - behind - (6 - there)], None);
                let octets = [1, 2, 3, 4, 5, 6][..there].to_vec();
                assert_eq!(seen.frames, [(1, Technology::Ethernet, octets)]);
                assert_eq!(seen.complaints, ["packet 1 is torn: the file ends within it"]);
                assert_eq!(seen.wire_lengths, [6]);
            }
            let seen = seen(&file[..file.len() - behind - 6], None);
            assert_eq!(
                (seen.frames.len(), seen.complaints.len()),
                (0, 1),
                "nothing is there of it"
            );
        }
    }
}
