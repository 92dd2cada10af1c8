//! What tools print and programs hold is read as the frame it was; what makes no sense is named.

use super::super::tests::{Seen, seen};
use super::*;
use proptest::prelude::*;

/// A frame whose text reads like hex in places.
const FRAME: [u8; 36] = *b"\x60\x01ab cafe 01 02\x00\xff{0x10}, \"ee\" #dadab";

fn assert_read(text: &str) {
    for text in [text.to_owned(), format!("{text}\n"), text.replace('\n', "\r\n")] {
        let Seen { frames, complaints, .. } = seen(text.as_bytes(), Some(Technology::Ethernet));
        assert_eq!(complaints, [""; 0], "{text}");
        assert_eq!(frames, [(1, Technology::Ethernet, FRAME.to_vec())], "{text}");
    }
}

/// Rows of sixteen octets: `row` is told their offset, octets and text.
fn dump(row: impl Fn(usize, &[u8], &str) -> String) -> String {
    let rows = FRAME.chunks(16).enumerate().map(|(at, octets)| {
        let shown =
            |octet: &u8| if matches!(octet, b' '..=b'~') { char::from(*octet) } else { '.' };
        row(16 * at, octets, &octets.iter().map(shown).collect::<String>())
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn digits(octets: &[u8], group: usize) -> String {
    let text = |group: &[u8]| group.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    octets.chunks(group).map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn dumps_of_every_tool_are_the_frame() {
    let wireshark = |at: usize, octets: &[u8], text: &str| {
        format!("{at:04x}   {:47}   {text}", digits(octets, 1))
    };
    assert_read(&dump(wireshark));
    assert_read(&dump(|at, octets, _| format!("{at:04x}  {}", digits(octets, 1))));
    assert_read(&dump(|at, octets, text| format!("{at:08x}: {:39}  {text}", digits(octets, 2))));
    assert_read(&dump(|at, octets, text| format!("{at:08x}: {:47}  {text}", digits(octets, 1))));
    assert_read(&dump(|at, octets, _| format!("\t0x{at:04x}:  {}", digits(octets, 2))));
    assert_read(&dump(|at, octets, text| {
        format!("\t0x{at:04x}:  {:39}  {text}", digits(octets, 2))
    }));
    let halves = |at: usize, octets: &[u8], text: &str| {
        let (left, right) = octets.split_at(octets.len().min(8));
        format!("{at:08x}  {:23}  {:23}  |{text}|", digits(left, 1), digits(right, 1))
    };
    assert_read(&format!("{}\n00000024", dump(halves)));
    assert_read(&format!(
        "{}\n000024",
        dump(|at, octets, _| format!("{at:06x} {}", digits(octets, 1)))
    ));
}

#[test]
fn headings_above_a_dump_are_no_fault() {
    let tcpdump = dump(|at, octets, _| format!("\t0x{at:04x}:  {}", digits(octets, 2)));
    let text = format!(
        "12:00:00.000001 IP 198.18.0.1.49152 > 198.18.0.2.4791: UDP, length 24\n{tcpdump}\n"
    );
    let twice = seen(text.repeat(2).as_bytes(), None);
    assert_eq!((twice.frames.len(), twice.complaints.len()), (2, 0), "{:?}", twice.complaints);
    assert_eq!(twice.frames[1].0, 2);
}

#[test]
fn arrays_and_strings_of_programs_are_the_frame() {
    let joined = |octets: &[u8], form: fn(&u8) -> String, between: &str| {
        octets.iter().map(form).collect::<Vec<_>>().join(between)
    };
    let array = |octets: &[u8]| joined(octets, |octet| format!("{octet:#04x}"), ", ");
    let escapes = |octets: &[u8]| joined(octets, |octet| format!("\\x{octet:02x}"), "");
    assert_read(&array(&FRAME));
    assert_read(&escapes(&FRAME));
    assert_read(&format!("b'{}'", escapes(&FRAME)));
    assert_read(&format!("[{}]", array(&FRAME)));
    assert_read(&format!("const char frame[] = \"{}\";", escapes(&FRAME)));
    let (first, second) = FRAME.split_at(16);
    assert_read(&format!("\"{}\" \\\n\"{}\"", escapes(first), escapes(second)));
    assert_read(&format!("{},\n{}", array(first), array(second)));
    assert_read(&format!(
        "/* Frame (36 bytes) */ static const unsigned char pkt1[36] = {{\n{}, /* `.ab */\n\n{} /* a */\n}};\nunsigned int pkt1_len = 36;",
        array(first),
        array(second)
    ));
}

#[test]
fn rows_that_are_missing_are_named_and_the_next_dump_goes_on() {
    let rows = dump(|at, octets, _| format!("{at:04x}  {}", digits(octets, 1)));
    let rows: Vec<_> = rows.lines().collect();
    let text = [rows[0], rows[2], "", rows[0], rows[1], rows[2], "", "0010: 00"].join("\n");
    let seen = seen(text.as_bytes(), None);
    assert_eq!(seen.frames, [(2, Technology::Infiniband, FRAME.to_vec())]);
    assert_eq!(
        seen.complaints,
        [
            "line 2: offset 0x20 after 0x10 octets: rows are missing",
            "line 8: a dump begins at offset 0x10: rows are missing",
        ]
    );
}

#[test]
fn a_star_repeats_a_row_and_no_offset_makes_it_endless() {
    let zeros = "0 0".repeat(15);
    let row = |at: &str| format!("{at}  {}\n", format!("0{zeros}0").as_str());
    let text = format!("{}*\n00000040\n", row("00000000"));
    assert_eq!(seen(text.as_bytes(), None).frames, [(1, Technology::Infiniband, vec![0; 64])]);
    let text = format!("{}*\nfffffffffff0\n{}", row("000000000000"), row("fffffffffff0"));
    let seen = seen(text.as_bytes(), None);
    assert_eq!(seen.frames, []);
    assert!(seen.complaints[0].contains("rows are missing"), "{:?}", seen.complaints);
}

#[test]
fn what_is_no_hex_is_told_with_what_would_be() {
    for (text, told) in [
        ("", "no frame is in it: understood are"),
        ("# nothing\n\n", "no frame is in it: understood are"),
        ("hello", "line 1: column 1: 'h' is not a hexadecimal digit"),
        ("{\"lrh\": {}}", "line 1: column 3: 'l' is not a hexadecimal digit"),
        ("0000  60 01 0g", "line 1: column 13: '0g' is not a pair of hexadecimal digits"),
        ("0000000 0160 6261", "line 1: words in this machine's order: use hexdump -C"),
        ("\0\0\0\0\0", "no pcap, no pcapng and no text: it begins with 00 00 00 00"),
        ("\u{1f}\u{8b}", "no pcap, no pcapng and no text"),
    ] {
        let seen = seen(text.as_bytes(), None);
        assert_eq!(seen.frames, [], "{text:?}");
        assert!(seen.complaints[0].starts_with(told), "{text:?}: {:?}", seen.complaints);
    }
    assert_eq!(seen(b"\x1f\x8b\x08\0", None).complaints, ["compressed by gzip: gunzip it first"]);
    assert_eq!(seen(b"\xef\xbb\xbf6001", None).frames[0].2, [0x60, 1]);
}

#[test]
fn nobody_has_to_say_that_a_frame_is_ethernet() {
    let pause = format!("0180c2000001 020000000002 8808 0001 00ff {}", "00".repeat(42));
    assert_eq!(seen(pause.as_bytes(), None).frames[0].1, Technology::Ethernet);
    assert_eq!(
        seen(pause.as_bytes(), Some(Technology::Infiniband)).frames[0].1,
        Technology::Infiniband
    );
    // A sound packet may have those two octets where Ethernet has its type: LRH, then a BTH.
    let packet = "0002000400070001 0400ffff 88080012 00000011 00112233 00000000 0000";
    assert_eq!(seen(packet.as_bytes(), None).frames[0].1, Technology::Infiniband);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_line_is_a_frame_or_named(
        text in "(0000|0010|00000000:|0x0000:|\\*|\\{|\\}|,|\\\\x|0x|[0-9a-f]{1,4}|#|/\\*|\\*/|é|[ \t\n]{1,3}){0,60}",
    ) {
        let seen = seen(text.as_bytes(), None);
        prop_assert!(!seen.frames.is_empty() || !seen.complaints.is_empty());
        prop_assert!(seen.frames.iter().all(|(_, _, octets)| !octets.is_empty()));
    }
}
