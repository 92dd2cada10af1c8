//! A small picture of a series: one character for each value, on a scale from zero to one.

/// Eighths of a character cell.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws `values` (1.0 is full height) in at most `width` characters; neighbours share one by their mean.
///
/// Without Unicode each value is a digit; 9 is full height.
pub fn draw(values: &[f64], width: usize, unicode: bool) -> String {
    if values.is_empty() || width == 0 {
        return String::new();
    }
    let columns = width.min(values.len());
    let column = |index: usize| {
        let from = index * values.len() / columns;
        let to = ((index + 1) * values.len() / columns).max(from + 1);
        values[from..to].iter().sum::<f64>() / (to - from) as f64
    };
    (0..columns)
        .map(|index| {
            let share = column(index).clamp(0.0, 1.0);
            if unicode {
                BLOCKS[(share * 8.0).round() as usize]
            } else {
                char::from(b'0' + (share * 9.0).round() as u8)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn heights_follow_values_and_neighbours_share_a_column() {
        assert_eq!(draw(&[0.0, 0.5, 1.0], 10, true), " ▄█");
        assert_eq!(draw(&[0.0, 1.0, 1.0, 1.0], 2, true), "▄█");
        assert_eq!(draw(&[0.0, 1.0, 7.0], 3, false), "099");
        assert_eq!(draw(&[], 5, true), "");
    }
}
