//! A header as a table of its fields, from which both directions follow.
//!
//! A table names every bit of its header, reserved bits included, and the compiler checks that the widths add up to
//! the header's length. Reading the fields of any octets and writing them back therefore gives the same octets. What
//! the fields *mean* stays with `proto::wire`; tests check that both agree.

use std::net::Ipv6Addr;

/// A header.
#[derive(Debug)]
pub struct Layer {
    /// Its key in JSON.
    pub key: &'static str,
    /// Its title in a tree.
    pub title: &'static str,
    /// Length on the wire, octets.
    pub octets: usize,
    /// Its fields in the order of their bits; together they cover the whole header.
    pub fields: &'static [Field],
    /// Names of the values of the first field, if they have names.
    pub name: Option<Name>,
}

/// Some bits of a header.
#[derive(Debug)]
pub struct Field {
    /// Its key in JSON.
    pub name: &'static str,
    /// The key as JSON writes it: `"name":`.
    pub opening: &'static str,
    /// The key as a tree writes it, between spaces.
    pub label: &'static str,
    /// The standard reserves its bits: they should be 0.
    pub reserved: bool,
    /// Width in bits.
    pub bits: usize,
    /// How the value is written.
    pub form: Form,
    /// The value that `encode` assumes if JSON leaves the field out.
    pub absent: Absent,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A decimal number.
    Number,
    /// A decimal number in JSON, hexadecimal in a tree: keys, types, queue pairs.
    Code,
    /// A decimal number in two's complement.
    Signed,
    /// `"0x…"` with all digits: numbers above 2^53, which JSON readers may round.
    Wide,
    /// `"00:11:22:33:44:55"`.
    Mac,
    /// `"192.0.2.1"`.
    Ipv4,
    /// `"2001:db8::1"`.
    Ipv6,
}

/// Returns the name of a value, if it has one.
pub type Name = fn(u64) -> Option<&'static str>;

/// What `encode` assumes if JSON leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing: the field is required.
    Required,
    /// This value.
    Or(u64),
    /// The value that follows from the rest of the frame; `"auto"` in JSON means the same.
    Computed,
}

/// Declares tables; the compiler checks that the widths of a header's fields add up to its length.
macro_rules! headers {
    ($($(#[$doc:meta])* $layer:ident $key:literal $title:literal $octets:literal $(named $name:ident)? {
        $($field:literal $bits:literal $(as $form:ident)? $(= $absent:tt)?,)*
    })*) => { $(
        $(#[$doc])*
        pub(super) static $layer: $crate::layer::Layer = $crate::layer::Layer {
            key: $key,
            title: $title,
            octets: $octets,
            fields: &[$($crate::layer::Field {
                name: $field,
                opening: concat!("\"", $field, "\":"),
                label: concat!("  ", $field, " "),
                reserved: $crate::layer::is_reserved($field),
                bits: $bits,
                form: $crate::layer::form!($($form)?),
                absent: $crate::layer::absent!($($absent)?),
            },)*],
            name: $crate::layer::first(&[$(Some($name),)? None]),
        };
        const _: () = assert!(0 $(+ $bits)* == 8 * $octets);
    )* };
}

/// The form of a field: a decimal number unless the table says otherwise.
macro_rules! form {
    () => {
        $crate::layer::Form::Number
    };
    ($form:ident) => {
        $crate::layer::Form::$form
    };
}

/// What `encode` assumes where JSON leaves a field out.
macro_rules! absent {
    () => {
        $crate::layer::Absent::Required
    };
    (auto) => {
        $crate::layer::Absent::Computed
    };
    ($value:literal) => {
        $crate::layer::Absent::Or($value)
    };
}

pub(super) use {absent, form, headers};

/// The first of a list that is never empty.
pub(super) const fn first(names: &[Option<Name>]) -> Option<Name> {
    names[0]
}

/// True if a field of this name is reserved.
pub(super) const fn is_reserved(name: &str) -> bool {
    matches!(name.as_bytes(), [b'r', b'e', b's', b'e', b'r', b'v', b'e', b'd', ..])
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of at most 64 bits.
    Bits(u64),
    /// An address of 128 bits.
    Ipv6(Ipv6Addr),
}

impl Layer {
    /// The fields of the header at the front of `octets`, in order.
    ///
    /// # Panics
    /// If `octets` is shorter than the header.
    #[inline]
    pub fn read<'a>(
        &'static self,
        octets: &'a [u8],
    ) -> impl Iterator<Item = (&'static Field, Value)> + 'a {
        assert!(octets.len() >= self.octets, "the caller checked the length of the header");
        let mut at = 0;
        self.fields.iter().map(move |field| {
            at += field.bits;
            (field, field.value(octets, at - field.bits))
        })
    }

    /// The reserved fields and their bits.
    ///
    /// # Panics
    /// If `octets` is shorter than the header.
    #[inline]
    pub fn reserved<'a>(
        &'static self,
        octets: &'a [u8],
    ) -> impl Iterator<Item = (&'static Field, u64)> + 'a {
        let mut at = 0;
        let placed = self.fields.iter().map(move |field| {
            at += field.bits;
            (field, at - field.bits)
        });
        placed.filter(|(field, _)| field.reserved).map(|(f, at)| (f, bits(octets, at, f.bits)))
    }

    /// The number in the field `name` of the header at the front of `octets`.
    ///
    /// # Panics
    /// If the header has no such field, or `octets` is shorter than the header.
    #[inline]
    pub fn get(&'static self, octets: &[u8], name: &str) -> u64 {
        self.place(name).read(octets)
    }

    /// The place of the field `name`. In a constant, the compiler does the search.
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

/// A field and its place in the header.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its first bit, counted from the header's.
    pub at: usize,
    /// The field.
    pub field: &'static Field,
}

impl Place {
    /// The number in the field.
    #[inline]
    pub fn read(self, octets: &[u8]) -> u64 {
        bits(octets, self.at, self.field.bits)
    }

    /// The value of the field.
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
                octets[at / 8..][..16].try_into().expect("an address begins at a whole octet");
            return Value::Ipv6(address.into());
        }
        Value::Bits(bits(octets, at, self.bits))
    }

    /// The largest value that the field can hold.
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

/// Overwrites `width` bits of `octets` from bit `at` on with `value`.
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
