//! Text in pictures. Its width can only be estimated before it is drawn: this file estimates it, and
//! where lines of them end.

/// Approximate width of a letter; most are narrower in the fonts of pictures.
const LETTER: f64 = 6.3;

/// Approximate width of a text.
pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// A text in lines of `room`, the first of them of `first`; a word that is longer than a line is cut.
pub fn lines(text: &str, first: f64, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let room = if lines.len() == 1 { first } else { room };
        let line = lines.last().map_or("", String::as_str);
        let gap = usize::from(!line.is_empty());
        if width(line) + width(word) + gap as f64 * LETTER > room && (gap > 0 || lines.len() == 1) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let most = |room: f64| (room / LETTER) as usize;
    for (place, line) in lines.iter_mut().enumerate() {
        let most = most(if place == 0 { first } else { room });
        if line.chars().count() > most {
            *line = line.chars().take(most.saturating_sub(1)).chain(['…']).collect();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_long_words_are_cut() {
        let ten = 10.5 * LETTER;
        assert_eq!(lines("one two three four", ten, ten), ["one two", "three four"]);
        assert_eq!(lines("one two", 2.0 * LETTER, ten), ["", "one two"]);
        assert_eq!(lines("abcdefghijkl m", ten, ten), ["", "abcdefghi…", "m"]);
        assert_eq!(lines("", ten, ten), [""]);
        assert_eq!(lines("\u{2009}", ten, ten), ["\u{2009}"]);
    }
}
