//! Parsed values, and their conversion into the types of a struct's fields.

use super::Ratio;
use crate::ids::Dscp;
use crate::units::{BitRate, Bytes, Duration, Instant};

/// A value that its key's kind has accepted, units resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, or one of a key's words.
    Text(String),
    /// True or false.
    Flag(bool),
    /// An integer.
    Whole(i64),
    /// A number.
    Real(f64),
    /// An exact gain.
    Gain(Ratio),
    /// A length of time.
    Time(Duration),
    /// A rate.
    Rate(BitRate),
    /// A size.
    Size(Bytes),
    /// The elements of an array.
    List(Vec<Value>),
}

impl Value {
    /// The string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A type that a parsed value converts into.
pub trait FromValue: Sized {
    /// The value in this type; `None` if it does not fit, which its key's kind rules out.
    fn from_value(value: &Value) -> Option<Self>;

    /// What stands for a key that is missing and has no default.
    fn absent() -> Option<Self> {
        None
    }
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $value:expr;)+) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        })+
    };
}

from_value! {
    String: Value::Text(text) => Some(text.clone());
    bool: Value::Flag(flag) => Some(*flag);
    u8: Value::Whole(number) => (*number).try_into().ok();
    u16: Value::Whole(number) => (*number).try_into().ok();
    u32: Value::Whole(number) => (*number).try_into().ok();
    u64: Value::Whole(number) => (*number).try_into().ok();
    usize: Value::Whole(number) => (*number).try_into().ok();
    i64: Value::Whole(number) => Some(*number);
    Dscp: Value::Whole(number) => Dscp::new((*number).try_into().ok()?).ok();
    Ratio: Value::Gain(gain) => Some(*gain);
    Duration: Value::Time(time) => Some(*time);
    Instant: Value::Time(time) => Some(Instant::ZERO + *time);
    BitRate: Value::Rate(rate) => Some(*rate);
    Bytes: Value::Size(size) => Some(*size);
    Millionths: Value::Real(share) => Some(Millionths((share * 1e6).round() as u64));
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Real(number) => Some(*number),
            Value::Whole(number) => Some(*number as f64),
            _ => None,
        }
    }
}

/// A share of one, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Millionths(pub u64);

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &Value) -> Option<Vec<T>> {
        let Value::List(list) = value else { return None };
        list.iter().map(T::from_value).collect()
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Option<T>> {
        T::from_value(value).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}
