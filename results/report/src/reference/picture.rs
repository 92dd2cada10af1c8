//! A picture of a published figure: PNG or JPEG, shown beside the figure, and over one panel if two points
//! of each of its axes are known.

use super::{Place, Target};
use base64::prelude::{BASE64_STANDARD, Engine};
use std::str::FromStr;

/// Greatest size of a picture, octets: the page contains it.
const MOST: usize = 512 * 1024;

/// Format of a picture.
#[derive(Debug)]
pub struct Kind {
    /// Its media type.
    media: &'static str,
    /// Its first octets.
    begin: &'static [u8],
    /// Reads width and height.
    size: fn(&[u8]) -> Option<(u32, u32)>,
}

/// PNG of ISO/IEC 15948 and JPEG of ITU-T T.81.
static KINDS: [Kind; 2] = [
    Kind { media: "image/png", begin: b"\x89PNG\r\n\x1a\n", size: png_size },
    Kind { media: "image/jpeg", begin: b"\xff\xd8\xff", size: jpeg_size },
];

/// The format by the first octets.
pub fn kind(octets: &[u8]) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| octets.starts_with(kind.begin))
}

/// Two points of an axis: pixels from the upper left corner of the picture, and the value there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis([(f64, f64); 2]);

impl Axis {
    /// The value at pixel 0, and the difference from one pixel to the next.
    fn line(&self) -> (f64, f64) {
        let [(p, a), (q, b)] = self.0;
        let step = (b - a) / (q - p);
        (a - p * step, step)
    }
}

impl FromStr for Axis {
    type Err = String;

    /// Of `PIXEL=VALUE,PIXEL=VALUE`.
    fn from_str(text: &str) -> Result<Axis, String> {
        let wrong = || format!("{text:?} is not PIXEL=VALUE,PIXEL=VALUE");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let point = |text: &str| {
            let (pixel, value) = text.split_once('=')?;
            Some((number(pixel)?, number(value)?))
        };
        let (one, other) = text.split_once(',').ok_or_else(wrong)?;
        let points = (point(one).ok_or_else(wrong)?, point(other).ok_or_else(wrong)?);
        if points.0.0 == points.1.0 || points.0.1 == points.1.1 {
            return Err(format!("{text:?}: two different pixels and two different values, please"));
        }
        Ok(Axis([points.0, points.1]))
    }
}

/// The place of a picture over a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The panel, as `over-time.csv` calls it.
    pub panel: String,
    /// The run, if several panels have the name.
    pub run: Option<String>,
    /// Time in τ.
    pub x: Axis,
    /// In the units of the panel's axis.
    pub y: Axis,
}

impl Calibration {
    /// From the options `--over PANEL` or `--over PANEL,RUN`, and `x:` and `y:` of `--calibrate`.
    ///
    /// # Errors
    /// If one of them is missing, repeated or malformed.
    pub fn of(over: &str, calibrate: &[String]) -> Result<Calibration, String> {
        let axis = |name: &str| {
            let prefix = format!("{name}:");
            let mut found = calibrate.iter().filter_map(|one| one.strip_prefix(&prefix));
            match (found.next(), found.next()) {
                (Some(axis), None) => axis.parse::<Axis>(),
                (None, _) => {
                    Err(format!("there is no --calibrate {prefix}PIXEL=VALUE,PIXEL=VALUE"))
                }
                _ => Err(format!("--calibrate {prefix} is there twice")),
            }
        };
        if let Some(other) =
            calibrate.iter().find(|one| !one.starts_with("x:") && !one.starts_with("y:"))
        {
            return Err(format!("--calibrate {other:?} begins with neither x: nor y:"));
        }
        let (panel, run) = match over.split_once(',') {
            Some((panel, run)) => (panel, Some(run.to_owned())),
            None => (over, None),
        };
        Ok(Calibration { panel: panel.to_owned(), run, x: axis("x")?, y: axis("y")? })
    }
}

/// The place of a picture over a panel: the value at its upper left corner, and the difference from pixel to pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Over {
    /// Over which panel.
    pub place: Place,
    /// In τ.
    pub x: (f64, f64),
    /// In the units of the panel's axis.
    pub y: (f64, f64),
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file's name.
    pub name: String,
    /// All of it as a data URI.
    pub uri: String,
    /// Its width and height, pixels.
    pub size: (u32, u32),
    /// Where it lies over ours.
    pub over: Option<Over>,
}

impl Picture {
    /// Reads the size of the picture.
    ///
    /// # Errors
    /// If it is too large, broken, or over an unknown panel.
    pub fn read(
        name: String,
        kind: &Kind,
        octets: &[u8],
        calibration: Option<&Calibration>,
        figure: &dyn Target,
    ) -> Result<Picture, String> {
        if octets.len() > MOST {
            let most = MOST / 1024;
            return Err(format!("the picture has more than the {most} KiB that a page carries"));
        }
        let media = kind.media;
        let size = (kind.size)(octets).filter(|(wide, high)| *wide > 0 && *high > 0);
        let size = size.ok_or_else(|| format!("it begins as {media} and has no size"))?;
        let uri = format!("data:{media};base64,{}", BASE64_STANDARD.encode(octets));
        let over = calibration.map(|calibration| {
            let Calibration { panel, run, x, y } = calibration;
            let place = figure.find_panel(panel, run.as_deref())?;
            Ok::<Over, String>(Over { place, x: x.line(), y: y.line() })
        });
        Ok(Picture { name, uri, size, over: over.transpose()? })
    }
}

/// From the chunk that is always the first.
fn png_size(octets: &[u8]) -> Option<(u32, u32)> {
    let chunk = octets.get(12..24)?.strip_prefix(b"IHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(chunk.get(at..at + 4)?.try_into().ok()?));
    Some((number(0)?, number(4)?))
}

/// From the first header of a frame, behind segments that each contain their length.
fn jpeg_size(octets: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        let marker = octets.get(at..at + 2)?;
        match marker {
            // Filling.
            [0xff, 0xff] => at += 1,
            // SOF0 to SOF15, but for DHT, JPG and DAC.
            [0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf] => {
                return Some((number(at + 7)?.into(), number(at + 5)?.into()));
            }
            [0xff, _] => at += 2 + usize::from(number(at + 2)?).max(2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_octets() {
        let media = |octets: &[u8]| kind(octets).map(|kind| kind.media);
        let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[0, 0, 1, 2, 0, 0, 0, 3]].concat();
        assert_eq!((media(&png), png_size(&png)), (Some("image/png"), Some((258, 3))));
        assert_eq!(png_size(&png[..20]), None);
        let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 9, 9, 0xff, 0xff, 0xc2, 0, 9, 8, 0, 5, 1, 4, 3];
        assert_eq!((media(&jpeg), jpeg_size(&jpeg)), (Some("image/jpeg"), Some((260, 5))));
        assert_eq!(jpeg_size(&[0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff]), None);
        assert_eq!(media(b"panel,run"), None);
    }

    #[test]
    fn two_points_make_an_axis() {
        let axis: Axis = "100=0, 300=14000".parse().expect("two points");
        assert_eq!(axis.line(), (-7_000.0, 70.0));
        for wrong in ["", "1=2", "1=2,3", "1=2,1=3", "1=2,3=2", "a=1,2=3", "1=inf,2=3"] {
            assert!(wrong.parse::<Axis>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_axes_and_nothing_else_make_a_calibration() {
        let of = |calibrate: &[&str]| {
            Calibration::of(
                "queue,none",
                &calibrate.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>(),
            )
        };
        let good = of(&["y:0=1,9=0", "x:0=0,9=9"]).expect("both axes");
        assert_eq!((good.panel.as_str(), good.run.as_deref()), ("queue", Some("none")));
        for (wrong, why) in [
            (&["x:0=0,9=9"][..], "no --calibrate y:"),
            (&["x:0=0,9=9", "y:0=1,9=0", "x:0=0,9=8"], "x: is there twice"),
            (&["x:0=0,9=9", "y:0=1,9=0", "z"], "neither x: nor y:"),
        ] {
            assert!(of(wrong).expect_err("wrong").contains(why), "{why}");
        }
    }
}
