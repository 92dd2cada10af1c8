//! Attributes as data: each is one table of fields, with place, width and access.
//!
//! An attribute is kept as its octets, exactly as on the wire. A [`Field`] reads and writes some bits of them, so
//! parsing and emitting are the same table, and a decoder can list any attribute by name. The modules of
//! [`subnet`], [`performance`] and [`congestion`] hold the tables; [`find`] gets one by class and number.

use crate::classes;

pub mod administration;
pub mod congestion;
pub mod performance;
pub mod subnet;

/// What a Set does to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Read,
    /// It takes the value of the datagram.
    Write,
    /// What the rules of its agent say: the value may mean "keep", "clear" or a transition.
    Rule,
}

/// Some bits of an attribute, or a row of such fields at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in lower case, as tools print it.
    pub name: &'static str,
    /// The first bit, counted from the first transmitted bit of the attribute.
    pub first: usize,
    /// Width in bits, at most 64.
    pub bits: usize,
    /// What a Set does.
    pub access: Access,
    /// The number of fields in the row.
    pub count: usize,
    /// Bits from one field of the row to the next.
    pub stride: usize,
}

impl Field {
    /// The value in `data`.
    pub fn get(&self, data: &[u8]) -> u64 {
        self.at(0, data)
    }

    /// The value of the field `index` of the row.
    ///
    /// # Panics
    /// If `data` ends before the field.
    pub fn at(&self, index: usize, data: &[u8]) -> u64 {
        let place = self.first + index * self.stride;
        let (from, to) = (place / 8, (place + self.bits).div_ceil(8));
        let octets =
            data[from..to].iter().fold(0u128, |bits, octet| bits << 8 | u128::from(*octet));
        (octets >> (to * 8 - place - self.bits)) as u64 & self.max()
    }

    /// Writes `value` to `data`; bits beyond the field's width are dropped.
    pub fn set(&self, data: &mut [u8], value: u64) {
        self.set_at(0, data, value);
    }

    /// Writes `value` to the field `index` of the row.
    ///
    /// # Panics
    /// If `data` ends before the field.
    pub fn set_at(&self, index: usize, data: &mut [u8], value: u64) {
        let place = self.first + index * self.stride;
        let (from, to) = (place / 8, (place + self.bits).div_ceil(8));
        let shift = to * 8 - place - self.bits;
        let mask = u128::from(self.max()) << shift;
        let value = u128::from(value & self.max()) << shift;
        for (place, octet) in data[from..to].iter_mut().rev().enumerate() {
            *octet = *octet & !((mask >> (8 * place)) as u8) | (value >> (8 * place)) as u8;
        }
    }

    /// Copies the field, or the whole row, from one attribute to another.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        (0..self.count).for_each(|index| self.set_at(index, to, self.at(index, from)));
    }

    /// The largest value.
    pub const fn max(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// An attribute: its number, its name and its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute ID.
    pub id: u16,
    /// The name in the standard.
    pub name: &'static str,
    /// Octets of data, from the first that the class gives to attributes.
    pub octets: usize,
    /// The fields in the order of their bits. Reserved bits belong to none.
    pub fields: &'static [Field],
}

impl Attribute {
    /// Copies every field that a Set simply takes.
    pub fn take(&self, from: &[u8], to: &mut [u8]) {
        self.fields
            .iter()
            .filter(|field| field.access == Access::Write)
            .for_each(|field| field.copy(from, to));
    }

    /// Copies every field; reserved bits of `to` stay.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        self.fields.iter().for_each(|field| field.copy(from, to));
    }
}

/// The attribute `id` of management class `class`, if it is one that the agents know.
pub fn find(class: u8, id: u16) -> Option<&'static Attribute> {
    let table: &[&Attribute] = match class {
        classes::SUBNET_LID_ROUTED | classes::SUBNET_DIRECTED => subnet::ATTRIBUTES,
        classes::PERFORMANCE => performance::ATTRIBUTES,
        classes::CONGESTION => congestion::ATTRIBUTES,
        _ => &[],
    };
    table.iter().copied().find(|attribute| attribute.id == id)
}

/// Declares attributes: a module for each, with a constant for each field.
///
/// A field is written `NAME "name" octet.bit width access`, and a row adds `* count by stride`.
macro_rules! attributes {
    ($($(#[$doc:meta])* $module:ident $id:literal $title:literal [$octets:literal] {
        $($field:ident $name:literal $octet:literal + $bit:literal, $bits:literal $access:ident
            $(* $count:literal by $stride:literal)?;)*
    })*) => {
        $($(#[$doc])*
        pub mod $module {
            use $crate::attribute::{Access, Attribute, Field};

            $(#[doc = concat!("The field `", $name, "`.")]
            pub const $field: Field = Field {
                name: $name,
                first: $octet * 8 + $bit,
                bits: $bits,
                access: Access::$access,
                count: [$($count,)? 1][0],
                stride: [$($stride,)? 0][0],
            };)*

            /// The attribute.
            pub const ATTRIBUTE: Attribute =
                Attribute { id: $id, name: $title, octets: $octets, fields: &[$($field,)*] };
        })*

        /// Every attribute of this file.
        pub const ATTRIBUTES: &[&crate::attribute::Attribute] = &[$(&$module::ATTRIBUTE,)*];
    };
}
pub(crate) use attributes;

#[cfg(test)]
mod tests;
