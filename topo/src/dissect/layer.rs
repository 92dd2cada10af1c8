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
        pub static $layer: $crate::dissect::layer::Layer = {
            use $crate::dissect::layer::Absent::*;
            const NAME: Option<$crate::dissect::layer::Name> =
                $crate::dissect::layer::first(&[$(Some($name),)? None]);
            $crate::dissect::layer::Layer {
                key: $key,
                title: $title,
                octets: $octets,
                fields: &[$($crate::dissect::layer::Field {
                    name: $field,
                    opening: concat!("\"", $field, "\":"),
                    bits: $bits,
                    form: $crate::dissect::layer::Form::$form,
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
        let octets = &octets[..self.octets];
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
        let reserved = placed.filter(|(_, field)| field.is_reserved());
        reserved.map(|(begin, field)| (field, bits(octets, begin, field.bits)))
    }

    /// One field by its name.
    ///
    /// # Panics
    /// If the header has no such field, or `octets` are fewer than the header's.
    pub fn get(&'static self, octets: &[u8], name: &str) -> u64 {
        let mut fields = self.read(octets).filter(|(field, _)| field.name == name);
        match fields.next().map(|(_, value)| value) {
            Some(Value::Bits(bits)) => bits,
            _ => panic!("{} has no number {name}", self.key),
        }
    }

    /// Where a field begins, in bits, and the field.
    ///
    /// # Panics
    /// If the header has no such field.
    pub fn place(&'static self, name: &str) -> (usize, &'static Field) {
        let mut at = 0;
        for field in self.fields {
            if field.name == name {
                return (at, field);
            }
            at += field.bits;
        }
        panic!("{} has no field {name}", self.key)
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

    /// Nobody may set its bits yet.
    #[inline]
    pub fn is_reserved(&self) -> bool {
        self.name.starts_with("reserved")
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - self.bits.min(64))
    }
}

/// `width` bits of `octets` from bit `at` on; at most 64, and within eight octets.
#[inline]
fn bits(octets: &[u8], at: usize, width: usize) -> u64 {
    let end = at + width;
    let number = |sum, octet: &u8| sum << 8 | u64::from(*octet);
    let sum = octets[at / 8..end.div_ceil(8)].iter().fold(0, number);
    sum >> (end.wrapping_neg() % 8) & u64::MAX >> (64 - width)
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
