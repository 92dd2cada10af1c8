//! Protocol buffers, as much as it takes to write them: whole numbers, texts, messages in messages.
//!
//! Source: the protobuf documentation, "Encoding". A field is its number and wire type, then its value;
//! whole numbers are varints, seven bits an octet, the least first.

/// A whole number follows.
const VARINT: u64 = 0;
/// Eight octets follow.
const FIXED64: u64 = 1;
/// A length and as many octets follow.
const OCTETS: u64 = 2;

/// A message under construction; fields stand in the order in which they are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// An empty one.
    pub const fn new() -> Message {
        Message(Vec::new())
    }

    /// With an unsigned number.
    pub fn uint(mut self, field: u64, value: u64) -> Message {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// With a number of eight octets.
    pub fn fixed(mut self, field: u64, value: u64) -> Message {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// With a text.
    pub fn text(self, field: u64, value: &str) -> Message {
        self.octets(field, value.as_bytes())
    }

    /// With a message inside.
    pub fn message(self, field: u64, inner: &Message) -> Message {
        self.octets(field, &inner.0)
    }

    /// As it is sent.
    pub fn into_octets(self) -> Vec<u8> {
        self.0
    }

    fn octets(mut self, field: u64, value: &[u8]) -> Message {
        self.tag(field, OCTETS);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_documentation_has_them() {
        // "Encoding": field 1 with 150, field 2 with "testing", field 3 with the first of these.
        let inner = Message::new().uint(1, 150);
        assert_eq!(inner.clone().into_octets(), [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing").into_octets();
        assert_eq!(text, [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        assert_eq!(Message::new().message(3, &inner).into_octets(), [0x1a, 3, 0x08, 0x96, 0x01]);
        let one = Message::new().fixed(44, 1.0f64.to_bits()).into_octets();
        assert_eq!(one, [0xe1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
