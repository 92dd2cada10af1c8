//! The sheet of a picture: the page, or one or two columns of print (docs/spec/seeing.md 5). Geometry follows the
//! width while letters keep their size, so a narrow picture is not just a scaled one.

use chart::palette;
use maud::{Markup, PreEscaped, html};

/// The sheet of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sheet {
    /// Width in print, millimetres; `None` for the page.
    pub millimetres: Option<u32>,
    /// Width in the unit of all pictures: a pixel of the page, 0.6 points in print.
    pub width: f64,
    /// x of the begin of time.
    pub left: f64,
    /// x of the end of time.
    pub right: f64,
    /// Height of panels as a share of their height on the page.
    pub tall: f64,
}

/// The page.
pub const PAGE: Sheet =
    Sheet { millimetres: None, width: 1_210.0, left: 54.0, right: 1_000.0, tall: 1.0 };
/// One and two columns of print: letters of 11 units are 6.6 points high.
pub const PRINTED: [Sheet; 2] = [
    Sheet { millimetres: Some(85), width: 402.0, left: 40.0, right: 394.0, tall: 0.75 },
    Sheet { millimetres: Some(178), width: 841.0, left: 48.0, right: 630.0, tall: 0.75 },
];

/// Style of pictures on any sheet.
pub const STYLE: &str = include_str!("../../assets/figure.css");
/// Space between two parts of a printed picture.
pub const GUTTER: f64 = 16.0;
/// Space for a name and its value right of the lines.
const MARGIN: f64 = 180.0;

/// A picture of the width of its sheet.
#[derive(Debug)]
pub struct Picture {
    /// Its content.
    pub body: Markup,
    /// Its height.
    pub height: f64,
}

impl Sheet {
    /// True for the page, which has a movable cursor.
    pub fn is_page(&self) -> bool {
        self.millimetres.is_none()
    }

    /// True if names and values are right of the lines; without room there they are above.
    pub fn has_margin(&self) -> bool {
        self.width - self.right >= MARGIN
    }

    /// Length of the time axis.
    pub fn span(&self) -> f64 {
        self.right - self.left
    }

    /// Height of a panel that has this height on the page.
    pub fn panel(&self, height: f64) -> f64 {
        (height * self.tall).round()
    }
}

/// A picture as a document of its own.
pub fn document(sheet: &Sheet, title: &str, about: &str, picture: &Picture) -> String {
    let Sheet { width, .. } = sheet;
    let height = picture.height.ceil();
    // On white paper, and without variables, because drawing programs do not support them.
    let style = palette::resolved(&(palette::rules() + STYLE));
    let wide = f64::from(sheet.millimetres.unwrap_or_default());
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(format!("{wide}mm")) height=(format!("{:.2}mm", wide * height / width))
            viewBox=(format!("0 0 {width} {height}")) role="img" {
            title { (title) }
            desc { (about) }
            style { (PreEscaped(style)) }
            rect class="paper" width=(width) height=(height) {}
            (picture.body)
        }
    };
    readable(&document.into_string()) + "\n"
}

/// Replaces control characters that XML does not allow.
fn readable(text: &str) -> String {
    let is_known = |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    text.chars().map(|letter| if is_known(letter) { letter } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_at_least_six_and_a_half_points_high_in_print() {
        for sheet in PRINTED {
            let point = sheet.width * 25.4 / 72.0 / f64::from(sheet.millimetres.expect("printed"));
            assert!(11.0 / point >= 6.5, "{sheet:?}: {:.2} pt", 11.0 / point);
        }
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced_and_no_variable_is_left() {
        let picture = Picture { body: html! { text { "a\u{1}b\u{0}\u{ffff}c\n" } }, height: 9.5 };
        let text = document(&PRINTED[0], "t & <u>", "\u{1b}", &picture);
        assert!(text.contains(">a\u{fffd}b\u{fffd}\u{fffd}c\n</text>"), "{text}");
        assert!(text.contains("<title>t &amp; &lt;u&gt;</title><desc>\u{fffd}</desc>"), "{text}");
        assert!(text.contains("width=\"85mm\" height=\"2.11mm\" viewBox=\"0 0 402 10\""), "{text}");
        assert!(!text.contains("var("), "{text}");
    }
}
