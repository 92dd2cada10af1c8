//! Headers as tables: each field once, with its type and its bits.

use crate::ids::{
    Dscp, Ecn, Lid, MacAddress, Priority, Psn, QueuePairNumber, ServiceLevel, VirtualLane, VlanId,
};
use crate::units::Instant;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A value that occupies some bits of a header.
pub(crate) trait Field: Copy {
    /// Converts from `bits`, which fit the field's width.
    fn from_bits(bits: u128) -> Self;

    /// Converts to bits. Bits beyond the field's width are not written.
    fn to_bits(self) -> u128;
}

/// Implements [`Field`] for types that convert through an unsigned integer of their own.
macro_rules! fields {
    ($($type:ty: |$bits:ident: $raw:ty| $from:expr, |$value:ident| $to:expr;)*) => {
        $(impl $crate::wire::header::Field for $type {
            #[inline(always)]
            fn from_bits(bits: u128) -> $type {
                let $bits = bits as $raw;
                $from
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                let $value = self;
                let bits: $raw = $to;
                bits as u128
            }
        })*
    };
}
pub(crate) use fields;

fields! {
    u8: |bits: u8| bits, |value| value;
    u16: |bits: u16| bits, |value| value;
    u32: |bits: u32| bits, |value| value;
    u64: |bits: u64| bits, |value| value;
    i16: |bits: u16| bits.cast_signed(), |value| value.cast_unsigned();
    bool: |bits: u8| bits != 0, |value| u8::from(value);
    [u8; 4]: |bits: u32| bits.to_be_bytes(), |value| u32::from_be_bytes(value);
    Ipv4Addr: |bits: u32| Ipv4Addr::from_bits(bits), |value| value.to_bits();
    Ipv6Addr: |bits: u128| Ipv6Addr::from_bits(bits), |value| value.to_bits();
    VirtualLane: |bits: u8| VirtualLane::truncate(bits), |value| value.get();
    ServiceLevel: |bits: u8| ServiceLevel::truncate(bits), |value| value.get();
    QueuePairNumber: |bits: u32| QueuePairNumber::truncate(bits), |value| value.get();
    Psn: |bits: u32| Psn::truncate(bits), |value| value.get();
    Priority: |bits: u8| Priority::truncate(bits), |value| value.get();
    VlanId: |bits: u16| VlanId::truncate(bits), |value| value.get();
    Dscp: |bits: u8| Dscp::truncate(bits), |value| value.get();
    Ecn: |bits: u8| Ecn::from_bits(bits), |value| value.bits();
    Lid: |bits: u16| Lid::new(bits), |value| value.get();
    MacAddress: |bits: u64| MacAddress::from_number(bits), |value| value.number();
    Instant: |bits: u64| Instant::from_ps(bits), |value| value.as_ps();
}

/// Declares the codes of a field. `from_bits` keeps reserved codes as `Unknown`, and `bits` is its inverse.
macro_rules! codes {
    ($(#[$meta:meta])* pub enum $name:ident[$width:literal] {
        $($(#[$doc:meta])* $variant:ident = $code:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A reserved code, kept.
            Unknown(u8),
        }

        impl $name {
            #[doc = concat!("The code in the low ", $width, " bits of `code`.")]
            pub const fn from_bits(code: u8) -> $name {
                match code & ((1 << $width) - 1) {
                    $($code => $name::$variant,)*
                    other => $name::Unknown(other),
                }
            }

            #[doc = concat!("The code, ", $width, " bits.")]
            pub const fn bits(self) -> u8 {
                match self {
                    $($name::$variant => $code,)*
                    $name::Unknown(code) => code & ((1 << $width) - 1),
                }
            }
        }

        $crate::wire::header::fields! { $name: |bits: u8| $name::from_bits(bits), |value| value.bits(); }
    };
}
pub(crate) use codes;

/// Reads bits `first..end` of a header, where bit 0 is the first transmitted bit.
#[inline(always)]
pub(crate) fn get<F: Field>(octets: &[u8], first: usize, end: usize) -> F {
    let (from, to) = (first / 8, end.div_ceil(8));
    // The compiler turns a word into one load, but not a loop over its octets.
    let half = |at| u16::from_be_bytes(*octets[at..].first_chunk().expect(WITHIN)) as u128;
    let word = |at| u32::from_be_bytes(*octets[at..].first_chunk().expect(WITHIN)) as u128;
    let bits = match to - from {
        2 => half(from),
        4 => word(from),
        6 => half(from) << 32 | word(from + 2),
        8 => word(from) << 32 | word(from + 4),
        16 => u128::from_be_bytes(*octets[from..].first_chunk().expect(WITHIN)),
        _ => octets[from..to].iter().fold(0, |bits, octet| bits << 8 | u128::from(*octet)),
    };
    F::from_bits(bits >> (to * 8 - end) & mask(end - first))
}

const WITHIN: &str = "a field lies within its header";

/// Writes `value` to bits `first..end` of a header, which must be zero.
#[inline(always)]
pub(crate) fn put<F: Field>(octets: &mut [u8], first: usize, end: usize, value: F) {
    let bits = value.to_bits() & mask(end - first);
    if first.is_multiple_of(8) && end.is_multiple_of(8) {
        let bytes = bits.to_be_bytes();
        octets[first / 8..end / 8].copy_from_slice(&bytes[bytes.len() - (end - first) / 8..]);
        return;
    }
    let mut at = end.div_ceil(8);
    let mut rest = bits << (at * 8 - end);
    while at > first / 8 {
        at -= 1;
        octets[at] |= rest as u8;
        rest >>= 8;
    }
}

const fn mask(width: usize) -> u128 {
    u128::MAX >> (128 - width)
}

/// Declares a header, or several without views: the owned form and the bit positions of the fields.
///
/// ```text
/// header! {
///     /// Documentation and derives.
///     pub struct Name[octets] "LAYER", view NameView {   // the view is optional
///         /// What the field means.
///         pub field: Type = first..end,                  // bits, counted from the header's first
///     }
/// }
/// ```
///
/// The owned form has `LEN`, `LAYER`, `parse`, `to_octets` and `emit`; the view reads single
/// fields from borrowed octets.
macro_rules! header {
    (
        $(#[$meta:meta])*
        pub struct $name:ident[$len:literal] $layer:literal, view $view:ident $fields:tt
    ) => {
        $crate::wire::header::header! { $(#[$meta])* pub struct $name[$len] $layer $fields }
        $crate::wire::header::view! { $view of $name[$len] $layer $fields }
    };
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident[$len:literal] $layer:literal {
            $($(#[$doc:meta])* pub $field:ident: $type:ty = $first:literal .. $end:literal,)*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            /// Length on the wire, in octets.
            pub const LEN: usize = $len;

            /// The header's name in [`crate::wire::error::ParseError::layer`].
            pub const LAYER: &'static str = $layer;

            /// Reads the header at the start of `octets`. Errors have offset 0.
            ///
            /// # Errors
            /// If the octets are fewer than [`Self::LEN`].
            #[inline]
            pub fn parse(octets: &[u8]) -> Result<Self, $crate::wire::error::ParseError> {
                let octets = $crate::wire::header::first_octets::<$len>($layer, octets)?;
                Ok($name { $($field: $crate::wire::header::get(octets, $first, $end),)* })
            }

            /// The header's octets. Bits of plain numbers beyond their field are dropped.
            #[inline]
            pub fn to_octets(&self) -> [u8; Self::LEN] {
                let mut octets = [0; Self::LEN];
                $($crate::wire::header::put(&mut octets, $first, $end, self.$field);)*
                octets
            }

            /// Writes the header to the first [`Self::LEN`] of `octets`.
            ///
            /// # Panics
            /// If there are fewer.
            #[inline]
            pub fn emit(&self, octets: &mut [u8]) {
                octets[..Self::LEN].copy_from_slice(&self.to_octets());
            }
        }
    )+};
}
pub(crate) use header;

/// Declares a header's view. Only [`header`] uses it.
macro_rules! view {
    (
        $view:ident of $name:ident[$len:literal] $layer:literal {
            $($(#[$doc:meta])* pub $field:ident: $type:ty = $first:literal .. $end:literal,)*
        }
    ) => {
        #[doc = concat!("Reads the fields of a [`", stringify!($name), "`] where they lie.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<T>(T);

        impl<T: AsRef<[u8]>> $view<T> {
            /// A view of the header at the start of `octets`.
            ///
            /// # Errors
            /// If `octets` are fewer than the header has.
            #[inline]
            pub fn new(octets: T) -> Result<Self, $crate::wire::error::ParseError> {
                $crate::wire::header::first_octets::<$len>($layer, octets.as_ref())?;
                Ok($view(octets))
            }

            #[inline(always)]
            fn octets(&self) -> &[u8; $len] {
                self.0.as_ref().first_chunk().expect("`new` checked the length")
            }

            $($(#[$doc])*
            #[inline]
            pub fn $field(&self) -> $type {
                $crate::wire::header::get(self.octets(), $first, $end)
            })*
        }
    };
}
pub(crate) use view;

/// The first `LEN` of `octets`, or an error for `layer`.
#[inline(always)]
pub(crate) fn first_octets<'a, const LEN: usize>(
    layer: &'static str,
    octets: &'a [u8],
) -> Result<&'a [u8; LEN], crate::wire::error::ParseError> {
    let short = || crate::wire::error::ParseError::short(layer, 0, LEN, octets.len());
    octets.first_chunk().ok_or_else(short)
}
