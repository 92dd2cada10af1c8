//! Series over time for the script of the page: 16-bit integers, deflated
//! (docs/spec/seeing.md 3.8). The static page does not need them.

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// The code of a missing value.
const NONE: u16 = u16::MAX;

/// All series of a page, in order.
#[derive(Debug, Default)]
pub struct Columns {
    /// The series by their keys, which the script uses: the value of code 0, the difference between two codes, and the
    /// number of values. A value is `low + code · step`.
    pub table: Vec<(String, f64, f64, usize)>,
    values: Vec<u16>,
}

impl Columns {
    /// Adds a series with the resolution `step`; values may be negative.
    pub fn add(&mut self, key: impl Into<String>, values: &[f64], step: f64) {
        let low = values.iter().copied().filter(|v| v.is_finite()).fold(f64::MAX, f64::min);
        let high = values.iter().copied().filter(|v| v.is_finite()).fold(f64::MIN, f64::max);
        let low = if low > high || low >= 0.0 { 0.0 } else { low };
        // A wide range gets larger steps.
        let step = step.max((high - low) / f64::from(NONE - 1));
        let coded = values.iter().map(|value| {
            if value.is_finite() { ((value - low) / step).round() as u16 } else { NONE }
        });
        self.values.extend(coded);
        self.table.push((key.into(), low, step, values.len()));
    }

    /// Base64 of the raw deflate stream.
    ///
    /// # Panics
    /// Never: writing to memory cannot fail.
    pub fn packed(&self) -> String {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        for value in &self.values {
            encoder.write_all(&value.to_le_bytes()).expect("memory takes all");
        }
        BASE64_STANDARD.encode(encoder.finish().expect("memory takes all"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::DeflateDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    fn unpacked(columns: &Columns) -> Vec<u16> {
        let octets: Vec<u8> = columns.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&octets).expect("memory");
        let packed = encoder.finish().expect("memory");
        assert_eq!(BASE64_STANDARD.encode(&packed), columns.packed());
        let mut back = Vec::new();
        DeflateDecoder::new(&packed[..]).read_to_end(&mut back).expect("our own stream");
        back.chunks(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect()
    }

    proptest! {
        #[test]
        fn a_value_comes_back_within_half_a_step(
            values in prop::collection::vec(prop_oneof![-5.0..200_000.0f64, Just(f64::NAN)], 1..50)
        ) {
            let mut columns = Columns::default();
            columns.add("x", &values, 0.5);
            let (_, low, step, n) = columns.table[0].clone();
            let back = unpacked(&columns);
            prop_assert_eq!(n, back.len());
            for (value, code) in values.iter().zip(back) {
                if value.is_finite() {
                    prop_assert!((low + f64::from(code) * step - value).abs() <= step / 2.0 + 1e-9);
                } else {
                    prop_assert_eq!(code, NONE);
                }
            }
        }
    }
}
