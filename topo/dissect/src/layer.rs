//! A header as a table of its fields, from which both directions follow.
//!
//! A table names every bit of its header, reserved ones too, and the compiler checks that widths add
//! up to the header's length. So whatever octets a header holds, reading its fields and writing them
//! back gives the same octets. What the fields *mean* stays with `proto::wire`; tests hold that both
//! agree. Names follow tshark's (wire.md 8).

use std::net::Ipv6Addr;

/// A header.
#[derive(Debug)]
pub struct Layer {
    /// Its key in JSON.
    pub key: &'static str,
    /// What people read.
    pub title: &'static str,
    /// Octets on the wire.
    pub octets: usize,
    /// Its fields in the order of their bits; together they are the whole header.
    pub fields: &'static [Field],
    /// The name of a value of the first field, if values have names.
    pub name: Option<Name>,
}

/// Some bits of a header.
#[derive(Debug)]
pub struct Field {
    /// Its key in JSON.
    pub name: &'static str,
    /// The same as JSON begins it: `"name":`.
    pub opening: &'static str,
    /// The same as a tree has it, between blanks.
    pub label: &'static str,
    /// Nobody may set its bits yet.
    pub reserved: bool,
    /// How many bits.
    pub bits: usize,
    /// How the value is written.
    pub form: Form,
    /// What it is where JSON leaves it out.
    pub absent: Absent,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A decimal number.
    Number,
    /// A decimal number in JSON; people read it in hex: keys, types, queue pairs.
    Code,
    /// A decimal number in two's complement.
    Signed,
    /// `"0x…"` with all digits: numbers that JSON's readers could round.
    Wide,
    /// `"00:11:22:33:44:55"`.
    Mac,
    /// `"192.0.2.1"`.
    Ipv4,
    /// `"2001:db8::1"`.
    Ipv6,
}

/// The name of a value, if it has one.
pub type Name = fn(u64) -> Option<&'static str>;

/// What a field is where JSON leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// An error.
    Required,
    /// This.
    Or(u64),
    /// Found from the rest of the frame; `"auto"` asks for the same.
    Computed,
}

/// Declares a table; the widths must add up.
macro_rules! layer {
    ($(#[$doc:meta])* $layer:ident $key:literal $title:literal $octets:literal $(named $name:expr;)? {
        $($field:literal $bits:literal $form:ident $absent:expr;)*
    }) => {
        $(#[$doc])*
        pub static $layer: $crate::layer::Layer = {
            use $crate::layer::Absent::*;
            const NAME: Option<$crate::layer::Name> =
                $crate::layer::first(&[$(Some($name),)? None]);
            $crate::layer::Layer {
                key: $key,
                title: $title,
                octets: $octets,
                fields: &[$($crate::layer::Field {
                    name: $field,
                    opening: concat!("\"", $field, "\":"),
                    label: concat!("  ", $field, " "),
                    reserved: $crate::layer::is_reserved($field),
                    bits: $bits,
                    form: $crate::layer::Form::$form,
                    absent: $absent,
                },)*],
                name: NAME,
            }
        };
        const _: () = assert!(0 $(+ $bits)* == 8 * $octets);
    };
}

pub(super) use layer;

/// The first of a list that is never empty.
pub(super) const fn first(names: &[Option<Name>]) -> Option<Name> {
    names[0]
}

/// Nobody may set the bits of a field of this name yet.
pub(super) const fn is_reserved(name: &str) -> bool {
    matches!(name.as_bytes(), [b'r', b'e', b's', b'e', b'r', b'v', b'e', b'd', ..])
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Up to 64 bits.
    Bits(u64),
    /// An address of 128.
    Ipv6(Ipv6Addr),
}

impl Layer {
    /// The fields that `octets` hold, in order.
    ///
    /// # Panics
    /// If there are fewer octets than the header has.
    #[inline]
    pub fn read<'a>(
        &'static self,
        octets: &'a [u8],
    ) -> impl Iterator<Item = (&'static Field, Value)> + 'a {
        assert!(octets.len() >= self.octets, "a header was announced");
        let mut at = 0;
        self.fields.iter().map(move |field| {
            let begin = at;
            at += field.bits;
            (field, field.value(octets, begin))
        })
    }

    /// The fields that are reserved, and what they hold.
    ///
    /// # Panics
    /// If there are fewer octets than the header has.
    #[inline]
    pub fn reserved<'a>(
        &'static self,
        octets: &'a [u8],
    ) -> impl Iterator<Item = (&'static Field, u64)> + 'a {
        let mut at = 0;
        let placed = self.fields.iter().map(move |field| {
            let begin = at;
            at += field.bits;
            (begin, field)
        });
        let reserved = placed.filter(|(_, field)| field.reserved);
        reserved.map(|(begin, field)| (field, bits(octets, begin, field.bits)))
    }

    /// What the number called `name` is in `octets`.
    ///
    /// # Panics
    /// If the header has no such number, or `octets` are fewer than the header's.
    #[inline]
    pub fn get(&'static self, octets: &[u8], name: &str) -> u64 {
        self.place(name).read(octets)
    }

    /// Where the field called `name` is. In a constant, the compiler looks for it.
    ///
    /// # Panics
    /// If the header has no such field.
    pub const fn place(&'static self, name: &str) -> Place {
        let (mut at, mut index) = (0, 0);
        while index < self.fields.len() {
            let field = &self.fields[index];
            if is_same(field.name, name) {
                return Place { at, field };
            }
            at += field.bits;
            index += 1;
        }
        panic!("the header has no such field")
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// A field and where in its header it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its first bit.
    pub at: usize,
    /// The field.
    pub field: &'static Field,
}

impl Place {
    /// What the field, a number, is in `octets`.
    #[inline]
    pub fn read(self, octets: &[u8]) -> u64 {
        bits(octets, self.at, self.field.bits)
    }

    /// What the field holds.
    #[inline]
    pub fn value(self, octets: &[u8]) -> Value {
        self.field.value(octets, self.at)
    }
}

impl Field {
    #[inline]
    fn value(&self, octets: &[u8], at: usize) -> Value {
        if self.form == Form::Ipv6 {
            let address: [u8; 16] =
                octets[at / 8..][..16].try_into().expect("an address stands on whole octets");
            return Value::Ipv6(address.into());
        }
        Value::Bits(bits(octets, at, self.bits))
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - self.bits.min(64))
    }
}

/// `width` bits of `octets` from bit `at` on; at most 64, and within eight octets.
#[inline]
fn bits(octets: &[u8], at: usize, width: usize) -> u64 {
    let from = &octets[at / 8..];
    let window = match from.first_chunk() {
        Some(window) => u64::from_be_bytes(*window),
        None => {
            let mut window = [0; 8];
            window[..from.len()].copy_from_slice(from);
            u64::from_be_bytes(window)
        }
    };
    window << (at % 8) >> (64 - width)
}

/// Writes `value` to `width` bits of `octets` from bit `at` on; the bits were anything.
pub(super) fn set_bits(octets: &mut [u8], at: usize, width: usize, value: u64) {
    for bit in 0..width {
        let place = at + bit;
        let mask = 0x80 >> (place % 8);
        if value >> (width - 1 - bit) & 1 == 1 {
            octets[place / 8] |= mask;
        } else {
            octets[place / 8] &= !mask;
        }
    }
}
