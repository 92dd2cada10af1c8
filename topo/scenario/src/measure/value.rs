//! What a measure comes to: a number, or names in an order.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The value of a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// Nodes in the order in which something came to them.
    Names(Vec<String>),
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Names(_) => None,
        }
    }

    /// False for what JSON has no way to write.
    pub fn is_finite(&self) -> bool {
        self.number().is_none_or(f64::is_finite)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Names(names) => f.write_str(&names.join(" ")),
        }
    }
}
