//! A grid of shares as a picture of greys, a point a cell: for a page to colour through a mask, so that
//! one picture serves both themes.

use png::{BitDepth, ColorType, Encoder, EncodingError};

/// The strongest grey: points have four bits.
const WHITE: u8 = 15;

/// A PNG with a row of points for each of `rows`: black is nothing or no value, white is one or more.
/// A row that is shorter than the longest ends in black.
///
/// # Errors
/// If there is no point at all.
pub fn picture(rows: &[&[f64]]) -> Result<Vec<u8>, EncodingError> {
    let wide = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, wide as u32, rows.len() as u32);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Four);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    let points: Vec<u8> = rows.iter().flat_map(|row| points(row, wide)).collect();
    writer.write_image_data(&points)?;
    writer.finish()?;
    Ok(out)
}

/// Two points an octet, the left one in its upper half; each row begins with an octet of its own.
fn points(row: &[f64], wide: usize) -> impl Iterator<Item = u8> {
    let point = |place: usize| row.get(place).copied().map_or(0, grey);
    (0..wide).step_by(2).map(move |place| point(place) << 4 | point(place + 1))
}

fn grey(share: f64) -> u8 {
    // What is not a number becomes nothing in this conversion.
    (share.clamp(0.0, 1.0) * f64::from(WHITE)).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_as_bright_as_its_share_and_no_value_is_black() {
        let rows = [&[0.0, 0.2, 1.0, 7.0, f64::NAN][..], &[0.5]];
        let octets = picture(&rows).expect("there are points");
        let mut reader =
            png::Decoder::new(std::io::Cursor::new(octets)).read_info().expect("our own");
        assert_eq!((reader.info().width, reader.info().height), (5, 2));
        let mut points = vec![0; reader.output_buffer_size().expect("it is small")];
        reader.next_frame(&mut points).expect("our own");
        assert_eq!(points, [0x03, 0xff, 0x00, 0x80, 0x00, 0x00]);
    }

    #[test]
    fn nothing_has_no_picture() {
        assert!(picture(&[]).is_err() && picture(&[&[]]).is_err());
    }
}
