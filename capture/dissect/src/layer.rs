//! A header as a table of its fields, from which both directions follow.
//!
//! A table names every bit of its header, reserved bits included, and the compiler checks that the widths add up to
//! the header's length. Reading the fields of any octets and writing them back therefore gives the same octets. What
//! the fields *mean* stays with `proto::wire`; tests check that both agree.

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
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key in JSON.
    pub name: &'static str,
    /// The key as JSON writes it: `"name":`.
    pub opening: &'static str,
    /// The key as a tree writes it, between spaces.
    pub label: &'static str,
    /// The standard reserves its bits: they should be 0.
    pub reserved: bool,
    /// Its first bit, counted from the header's.
    pub at: usize,
    /// Width in bits: at most 64, except for an IPv6 address.
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
            fields: &$crate::layer::placed([$($crate::layer::Field {
                name: $field,
                opening: concat!("\"", $field, "\":"),
                label: concat!("  ", $field, " "),
                reserved: $crate::layer::is_reserved($field),
                at: 0,
                bits: $bits,
                form: [$($crate::layer::Form::$form,)? $crate::layer::Form::Number][0],
                absent: [$($crate::layer::absent!($absent),)? $crate::layer::Absent::Required][0],
            },)*]),
            name: [$(Some($name as $crate::layer::Name),)? None][0],
        };
        const _: () = assert!(0 $(+ $bits)* == 8 * $octets);
    )* };
}

/// What `encode` assumes where JSON leaves a field out that is not required.
macro_rules! absent {
    (auto) => {
        $crate::layer::Absent::Computed
    };
    ($value:literal) => {
        $crate::layer::Absent::Or($value)
    };
}

pub(super) use {absent, headers};

/// True if a field of this name is reserved.
pub(super) const fn is_reserved(name: &str) -> bool {
    matches!(name.as_bytes(), [b'r', b'e', b's', b'e', b'r', b'v', b'e', b'd', ..])
}

/// The fields with their places, one after another.
pub(super) const fn placed<const N: usize>(mut fields: [Field; N]) -> [Field; N] {
    let mut index = 1;
    while index < N {
        fields[index].at = fields[index - 1].at + fields[index - 1].bits;
        index += 1;
    }
    fields
}

impl Layer {
    /// The number in the field `name` of the header at the front of `octets`.
    ///
    /// # Panics
    /// If the header has no such field, or `octets` is shorter than the header.
    #[inline]
    pub fn get(&'static self, octets: &[u8], name: &str) -> u64 {
        self.field(name).read(octets)
    }

    /// The field `name`. In a constant, the compiler does the search.
    ///
    /// # Panics
    /// If the header has no such field.
    pub const fn field(&'static self, name: &str) -> &'static Field {
        let mut index = 0;
        while !is_same(self.fields[index].name, name) {
            index += 1;
        }
        &self.fields[index]
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

impl Field {
    /// The number in the field of the header at the front of `octets`: of an IPv6 address none.
    ///
    /// # Panics
    /// If `octets` is shorter than the header.
    #[inline]
    pub fn read(&self, octets: &[u8]) -> u64 {
        let from = &octets[self.at / 8..];
        let window = match from.first_chunk() {
            Some(window) => u64::from_be_bytes(*window),
            None => {
                let mut window = [0; 8];
                window[..from.len()].copy_from_slice(from);
                u64::from_be_bytes(window)
            }
        };
        window << (self.at % 8) >> (64 - self.bits)
    }

    /// Sets the field of the header at the front of `octets`.
    pub(super) fn write(&self, octets: &mut [u8], value: u128) {
        for bit in 0..self.bits {
            let place = self.at + bit;
            let mask = 0x80 >> (place % 8);
            if value >> (self.bits - 1 - bit) & 1 == 1 {
                octets[place / 8] |= mask;
            } else {
                octets[place / 8] &= !mask;
            }
        }
    }

    /// The largest value that the field can hold.
    pub fn max(&self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }
}
