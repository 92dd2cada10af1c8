//! A text of whatever octets, read as hex: every frame in it has a tree, and an object that can be
//! asked to become a frame again.

use dissect::json::JsonSink;
use dissect::source::{Packet, Visitor, visit};
use dissect::tree::TreeSink;
use dissect::{Rules, decode, encode};
use std::io;

/// Takes each frame apart twice.
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
        let rules = Rules::default().with_fcs(fcs);
        self.tree.begin(&meta);
        decode(&mut self.tree, meta.technology, octets, meta.wire_length, rules);
        assert!(self.tree.finish().ends_with(b"\n"), "a tree is whole lines");
        self.json.begin(&meta);
        decode(&mut self.json, meta.technology, octets, meta.wire_length, rules);
        let line = String::from_utf8(self.json.finish().to_vec()).expect("JSON is UTF-8");
        assert_eq!(line.trim_end().lines().count(), 1, "an object a line");
        // It may be refused, with a reason.
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
    visit(octets, None, &mut both).expect("this visitor never has enough");
    assert!(both.frames + both.complaints > 0, "an input is a frame or a complaint");
    // Two digits an octet, and captures, which begin otherwise, have one.
    assert!(both.octets <= octets.len(), "more octets than were written");
}
