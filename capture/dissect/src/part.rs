//! A part of a frame under dissection, and the rules of the dissection.

use super::layer::Layer;
use super::sink::{Sink, wrong};

/// Whether Ethernet frames end with an FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fcs {
    /// Found from the lengths inside the frame and from four last octets that are a right FCS.
    #[default]
    Auto,
    /// Every frame ends with an FCS.
    Yes,
    /// No frame ends with an FCS.
    No,
}

/// Rules of a dissection.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether Ethernet frames end with an FCS.
    pub fcs: Fcs,
    /// Longer payloads are reported as wrong, octets.
    pub mtu: usize,
}

impl Default for Rules {
    fn default() -> Rules {
        // The largest MTU of InfiniBand and of RoCE (IBTA Vol 1, 5.2.14).
        Rules { fcs: Fcs::Auto, mtu: 4096 }
    }
}

/// Octets of a frame that one layer and the layers inside it own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The whole frame: some checks cover earlier headers.
    pub frame: &'a [u8],
    /// The first octet of the part.
    pub start: usize,
    /// One past the last octet of the part.
    pub end: usize,
    /// The rules of the dissection.
    pub rules: Rules,
    /// How many levels of wrapped frames are dissected.
    pub depth: u8,
    /// Octets of the wire that the capture does not hold; the CRCs are among them.
    pub missing: usize,
}

impl<'a> Part<'a> {
    /// The octets of the part.
    pub(super) fn octets(&self) -> &'a [u8] {
        &self.frame[self.start..self.end]
    }

    /// How many octets the part has.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// True if the capture holds all of the frame.
    pub(super) fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// The part without its first `octets`.
    pub(super) fn after(self, octets: usize) -> Part<'a> {
        Part { start: self.start + octets, ..self }
    }

    /// The part up to the octet `end` of the frame.
    pub(super) fn up_to(self, end: usize) -> Part<'a> {
        Part { end, ..self }
    }

    /// Reports the header `layer` and its reserved bits that are set; returns what follows it. Reports an error and
    /// returns `None` if the part is too short.
    pub(super) fn header(self, sink: &mut dyn Sink, layer: &'static Layer) -> Option<Part<'a>> {
        let octets = self.octets();
        let (present, needed) = (octets.len(), layer.octets);
        if present < needed {
            let reason = format_args!("needs {needed} octets, {present} are left");
            sink.error(layer.title, self.start, reason, octets);
            // A frame that was cut in the capture is not defective.
            if self.is_whole() {
                let short = needed - present;
                wrong!(sink, "too short for its {}: {short} octets are missing", layer.title);
            }
            return None;
        }
        sink.header(layer, octets);
        for field in layer.fields.iter().filter(|field| field.reserved) {
            let (key, name, bits) = (layer.key, field.name, field.read(octets));
            if bits != 0 {
                wrong!(sink, "{key}.{name} is {bits}, should be 0: these bits are reserved");
            }
        }
        Some(self.after(needed))
    }
}
