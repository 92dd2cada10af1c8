//! Files of either format and byte order, truncated at any octet, and files that are not captures.

use super::*;
use proptest::prelude::*;

/// Writes numbers in one byte order.
struct Writer(ByteOrder, Vec<u8>);

impl Writer {
    fn u16(&mut self, n: u16) -> &mut Writer {
        self.1.extend(if self.0 == ByteOrder::Little { n.to_le_bytes() } else { n.to_be_bytes() });
        self
    }
    fn u32(&mut self, n: u32) -> &mut Writer {
        self.1.extend(if self.0 == ByteOrder::Little { n.to_le_bytes() } else { n.to_be_bytes() });
        self
    }
    fn octets(&mut self, octets: &[u8]) -> &mut Writer {
        self.1.extend(octets);
        self.1.resize(self.1.len().next_multiple_of(4), 0);
        self
    }
    fn block(&mut self, kind: u32, body: impl Fn(&mut Writer)) -> &mut Writer {
        let mut inner = Writer(self.0, Vec::new());
        body(&mut inner);
        let length = inner.1.len() as u32 + 12;
        self.u32(kind).u32(length);
        self.1.extend(inner.1);
        self.u32(length)
    }
}

fn pcap(order: ByteOrder, magic: u32, link_type: u32, octets: &[u8]) -> Vec<u8> {
    let mut file = Writer(order, Vec::new());
    file.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65_535).u32(link_type);
    file.u32(3).u32(500).u32(octets.len() as u32).u32(octets.len() as u32);
    file.1.extend(octets);
    file.1
}

/// A section of one Ethernet interface (time stamps in microseconds by default) and a packet of each kind.
fn pcapng(order: ByteOrder) -> Vec<u8> {
    let mut file = Writer(order, Vec::new());
    file.block(0x0a0d_0d0a, |b| {
        b.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
    });
    file.block(1, |b| {
        b.u16(1).u16(0).u32(0).u16(2).u16(4).octets(b"eth0").u16(0).u16(0);
    });
    file.block(1, |b| {
        b.u16(1).u16(0).u32(4).u16(9).u16(1).octets(&[0x8a]).u16(14).u16(8);
        if b.0 == ByteOrder::Little {
            b.u32(1).u32(0)
        } else {
            b.u32(0).u32(1)
        };
    });
    file.block(6, |b| {
        b.u32(0).u32(0).u32(7).u32(5).u32(60).octets(b"first").u16(2).u16(4).u32(1).u16(0).u16(0);
    });
    file.block(2, |b| {
        b.u16(1).u16(0).u32(0).u32(512).u32(6).u32(6).octets(b"second");
    });
    file.block(3, |b| {
        b.u32(5).octets(b"third");
    });
    file.block(0x0000_0bad, |b| {
        b.u32(1);
    });
    file.block(6, |b| {
        b.u32(9).u32(0).u32(0).u32(0).u32(0);
    });
    file.1
}

fn frames(octets: &[u8]) -> Vec<CapturedFrame> {
    let reader = CaptureReader::new(octets).expect("a capture");
    reader.map(|frame| frame.expect("whole")).collect()
}

#[test]
fn pcap_is_read_in_both_orders_and_both_resolutions() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (magic, ns) in [(0xa1b2_c3d4, 3_000_500_000), (0xa1b2_3c4d, 3_000_000_500)] {
            let frames = frames(&pcap(order, magic, 1, b"0123456789abcd"));
            assert_eq!((frames.len(), frames[0].at_ns), (1, ns));
            assert_eq!(frames[0].frame.octets, b"0123456789abcd".as_slice());
            assert_eq!(frames[0].frame.kind, FrameKind::Ethernet);
        }
    }
}

#[test]
fn pcapng_is_read_in_both_orders_with_packets_of_every_age() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let octets = pcapng(order);
        let mut reader = CaptureReader::new(octets.as_slice()).expect("a capture");
        let frames: Vec<_> = reader.by_ref().map(|frame| frame.expect("whole")).collect();
        let texts: Vec<_> = frames.iter().map(|f| f.frame.octets.as_ref()).collect();
        assert_eq!(texts, [b"first".as_slice(), b"second", b"third"]);
        assert_eq!((frames[0].at_ns, frames[0].wire_size), (7_000, 60));
        assert_eq!(frames[0].interface.as_deref(), Some("eth0"));
        assert_eq!(frames[0].direction, Some(Direction::Rx));
        assert_eq!(frames[1].at_ns, 1_500_000_000, "512 / 2^10 s, and a second's offset");
        assert_eq!(reader.skipped().values().sum::<u64>(), 1, "{:?}", reader.skipped());
    }
}

#[test]
fn erf_records_lose_headers_and_padding_and_unknown_ones_are_counted() {
    let mut record = [0; 16].to_vec();
    record[8] = 21 | 0x80;
    record[15] = 4; // wire length
    record.extend([0x80, 0, 0, 0, 0, 0, 0, 0]);
    record.extend([0; 8]);
    record.extend(b"lrh!padding");
    let found = frames(&pcap(ByteOrder::Big, 0xa1b2_c3d4, 197, &record));
    assert_eq!(
        (found[0].frame.kind, found[0].frame.octets.as_ref()),
        (FrameKind::Infiniband, b"lrh!".as_slice())
    );
    record[8] = 25;
    let found = frames(&pcap(ByteOrder::Big, 0xa1b2_c3d4, 197, &record));
    assert_eq!(found[0].frame.kind, FrameKind::InfinibandLink);
    for (link_type, kind) in [(197, 2), (147, 21), (105, 21)] {
        record[8] = kind;
        let octets = pcap(ByteOrder::Big, 0xa1b2_c3d4, link_type, &record);
        let mut reader = CaptureReader::new(octets.as_slice()).expect("a capture");
        assert!(reader.next().is_none());
        assert_eq!(reader.skipped().values().sum::<u64>(), 1);
    }
}

#[test]
fn packets_are_numbered_in_the_order_of_the_file() {
    const HEADER: usize = 24;
    let one = pcap(ByteOrder::Big, 0xa1b2_c3d4, 1, &[0; 60]);
    let two = [&one[..], &one[HEADER..]].concat();
    let mut reader = CaptureReader::new(two.as_slice()).expect("a capture");
    let mut next = || reader.next_raw().expect("a whole file").map(|raw| raw.expect("good").number);
    assert_eq!([next(), next(), next()], [Some(1), Some(2), None]);
}

#[test]
fn bare_infiniband_is_told_apart_by_its_length() {
    for (octets, kind) in
        [(b"credit".as_slice(), FrameKind::InfinibandLink), (b"packets", FrameKind::Infiniband)]
    {
        let found = frames(&pcap(ByteOrder::Little, 0xa1b2_c3d4, 247, octets));
        assert_eq!((found[0].frame.kind, &found[0].frame.octets[..]), (kind, octets));
    }
}

#[test]
fn a_file_cut_anywhere_gives_all_octets_of_packets_that_are_there_then_says_so() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for file in [pcap(order, 0xa1b2_c3d4, 1, b"0123456789abcd"), pcapng(order)] {
            // The direction is an option behind the packet, and is lost if the file ends before it.
            let no_direction = |frame| CapturedFrame { direction: None, ..frame };
            let whole: Vec<_> = frames(&file).into_iter().map(no_direction).collect();
            for end in 24..file.len() {
                let mut reader = CaptureReader::new(&file[..end]).expect("it begins like one");
                let mut found: Vec<CapturedFrame> = Vec::new();
                let mut error = None;
                for next in reader.by_ref() {
                    match next {
                        Ok(frame) => found.push(no_direction(frame)),
                        Err(told) => error = Some(told),
                    }
                }
                assert!(reader.next().is_none(), "after an error nothing comes");
                let torn = matches!(error, Some(ReadError::Torn));
                let last = found.len().checked_sub(usize::from(torn)).expect("torn is one");
                assert_eq!(found[..last], whole[..last], "cut at {end}");
                if torn {
                    let (part, all) = (&found[last], &whole[last]);
                    let (there, octets) = (&part.frame.octets, &all.frame.octets);
                    assert!(!there.is_empty() && there.len() < octets.len(), "cut at {end}");
                    assert_eq!(there[..], octets[..there.len()]);
                    assert_eq!(&CapturedFrame { frame: all.frame.clone(), ..part.clone() }, all);
                    assert!(file[..end].ends_with(there), "no octet that is there is passed over");
                }
            }
        }
    }
}

#[test]
fn a_packet_that_is_there_is_read_even_if_its_block_ends_badly() {
    let mut file = pcapng(ByteOrder::Big);
    let trailer = file.windows(6).position(|six| six == b"second").expect("its data") + 8;
    file[trailer] ^= 1;
    let mut reader = CaptureReader::new(file.as_slice()).expect("a capture");
    let second = reader.nth(1).expect("the second").expect("all of it is there");
    assert_eq!(second.frame.octets, b"second".as_slice());
    assert!(matches!(reader.next(), Some(Err(ReadError::Length { .. }))));
}

#[test]
fn what_is_no_capture_is_refused_by_its_first_octets() {
    let error = CaptureReader::new(b"GET / HTTP".as_slice()).err().expect("no capture");
    assert!(error.to_string().contains("0x47455420"), "{error}");
    assert!(CaptureReader::new(b"".as_slice()).is_err());
}

proptest! {
    #[test]
    fn no_octets_make_it_panic(start in 0usize..6, octets in proptest::collection::vec(any::<u8>(), 0..600)) {
        let starts: [&[u8]; 6] = [
            b"",
            b"\xa1\xb2\xc3\xd4",
            b"\x4d\x3c\xb2\xa1",
            b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a",
            b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d",
            b"\x0a\x0d\x0d\x0a",
        ];
        let input = [starts[start], &octets].concat();
        if let Ok(reader) = CaptureReader::new(input.as_slice()) {
            prop_assert!(reader.count() <= input.len());
        }
    }

    #[test]
    fn no_change_of_one_octet_makes_it_panic(big in any::<bool>(), place in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut octets = pcapng(if big { ByteOrder::Big } else { ByteOrder::Little });
        let place = place.index(octets.len());
        octets[place] = value;
        if let Ok(reader) = CaptureReader::new(octets.as_slice()) {
            prop_assert!(reader.count() <= 8);
        }
    }
}
