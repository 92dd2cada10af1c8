//! Arbitrary octets read as hexadecimal text: every frame in it has a tree and a JSON object, and encoding
//! the object does not panic.

use capture::reader::CaptureReader;
use dissect::json::JsonSink;
use dissect::source::{Packet, Visitor, visit};
use dissect::tree::TreeSink;
use dissect::{Rules, decode, encode};
use std::io;

/// Decodes each frame as a tree and as JSON.
#[derive(Default)]
struct Both {
    json: JsonSink,
    tree: TreeSink,
    frames: usize,
    octets: usize,
    complaints: usize,
}

impl Visitor for Both {
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()> {
        let Packet { meta, octets, fcs } = packet;
        let rules = Rules { fcs, ..Rules::default() };
        self.tree.begin(&meta);
        decode(&mut self.tree, meta.technology, octets, meta.wire_length, rules);
        assert!(self.tree.finish().ends_with(b"\n"), "a tree ends with a line feed");
        self.json.begin(&meta);
        decode(&mut self.json, meta.technology, octets, meta.wire_length, rules);
        let line = String::from_utf8(self.json.finish().to_vec()).expect("JSON is UTF-8");
        assert_eq!(line.trim_end().lines().count(), 1, "an object takes one line");
        // `encode` may refuse the object with a reason.
        let _ = encode(line.trim_end());
        (self.frames, self.octets) = (self.frames + 1, self.octets + octets.len());
        Ok(())
    }

    fn unreadable(&mut self, what: &str) {
        assert!(!what.is_empty());
        self.complaints += 1;
    }
}

/// The octets are the text.
pub fn check(octets: &[u8]) {
    let mut both = Both::default();
    visit(octets, None, &mut both).expect("the visitor returns no error");
    let is_empty = both.frames + both.complaints == 0;
    // A capture may hold no packet.
    assert!(!is_empty || CaptureReader::new(octets).is_ok(), "no frame and no complaint");
    // Hexadecimal text needs two digits for each octet; a capture has one octet for each.
    assert!(both.octets <= octets.len(), "decode returns at most the octets of the input");
}
