//! Colours by role, light and dark, and the ramp of waiting (docs/spec/seeing.md 4). Each picture adds a second
//! difference besides colour: a dash, a shape, a word or a place.

/// Roles with their colours in the light theme and in the dark one.
const ROLES: [(&str, &str, &str); 20] = [
    ("page", "#fbfaf7", "#12151a"),
    ("card", "#ffffff", "#191d24"),
    ("ink", "#191d24", "#e9ebee"),
    ("muted", "#5b6370", "#9aa3b0"),
    ("line", "#dfe1e4", "#2c323b"),
    ("grid", "#eceded", "#242a32"),
    ("band", "#f3efe4", "#1f2229"),
    ("chip", "#eef0f2", "#262c35"),
    ("hot", "#c8500a", "#ff9552"),
    ("run", "#0a69ad", "#5fb4ef"),
    ("base", "#6a707a", "#8f97a3"),
    ("third", "#8a6000", "#e5c558"),
    ("fourth", "#5f4bb6", "#b3a4ff"),
    ("fifth", "#2f7d6d", "#63c7b2"),
    ("signal", "#99397a", "#e491c9"),
    ("pass", "#00704f", "#4fd1a5"),
    ("pass-soft", "#dff1ea", "#14352b"),
    ("fail", "#b3261e", "#ff8a80"),
    ("fail-soft", "#fbe4e2", "#3f1d1c"),
    ("unsure", "#7a5c00", "#e5c558"),
];

/// Sides of a comparison, in order: role and dash, so that they differ in grey too.
pub const SIDES: [(&str, &str); 6] = [
    ("run", ""),
    ("hot", "7 3"),
    ("fifth", "2 3"),
    ("signal", "9 3 2 3"),
    ("third", "4 4"),
    ("muted", "1 4"),
];

/// Roles that lines and bars may have.
const LINES: [&str; 9] =
    ["run", "base", "hot", "signal", "third", "fourth", "fifth", "fail", "muted"];

/// Share of waiting and its colours, light and dark: monotone in lightness, brighter is more in the
/// dark.
const RAMP: [(f64, [u8; 3], [u8; 3]); 5] = [
    (0.0, [0xd4, 0xd8, 0xdd], [0x35, 0x3c, 0x47]),
    (0.18, [0xec, 0xc0, 0x64], [0x8a, 0x5a, 0x1c]),
    (0.42, [0xe2, 0x81, 0x2a], [0xdc, 0x7d, 0x2c]),
    (0.70, [0xb8, 0x34, 0x1d], [0xff, 0xb6, 0x5c]),
    (1.0, [0x5e, 0x0b, 0x1c], [0xff, 0xf1, 0xc9]),
];

/// Classes of waiting, from none to always.
pub const LEVELS: usize = 13;

/// The class of a share of waiting. Below 0.03 there is nothing to see.
pub fn level(share: f64) -> usize {
    if share < 0.03 || !share.is_finite() {
        return 0;
    }
    let top = (LEVELS - 1) as f64;
    ((share * top).ceil().clamp(1.0, top)) as usize
}

/// Width of a line of that class, in pixels.
pub fn width(level: usize) -> f64 {
    1.0 + 3.1 * level as f64 / (LEVELS - 1) as f64
}

/// The greatest share of waiting of a class.
fn share(level: usize) -> f64 {
    level as f64 / (LEVELS - 1) as f64
}

fn ramp(share: f64, is_dark: bool) -> String {
    let colour = |row: &(f64, [u8; 3], [u8; 3])| if is_dark { row.2 } else { row.1 };
    let above = RAMP.iter().position(|row| row.0 >= share).unwrap_or(RAMP.len() - 1).max(1);
    let (low, high) = (&RAMP[above - 1], &RAMP[above]);
    let way = ((share - low.0) / (high.0 - low.0)).clamp(0.0, 1.0);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * way).round() as u8;
    let (a, b) = (colour(low), colour(high));
    format!("#{:02x}{:02x}{:02x}", mix(a[0], b[0]), mix(a[1], b[1]), mix(a[2], b[2]))
}

/// The colours of a theme by name: roles, then the ramp from `w0` to `w12`.
fn colours(is_dark: bool) -> impl Iterator<Item = (String, String)> {
    let role = move |(role, light, dark): (&str, &str, &str)| {
        (role.to_owned(), if is_dark { dark } else { light }.to_owned())
    };
    let step = move |level| (format!("w{level}"), ramp(share(level), is_dark));
    ROLES.into_iter().map(role).chain((0..LEVELS).map(step))
}

/// The custom properties of a theme: `--role` and `--w0` to `--w12`.
pub fn variables(is_dark: bool) -> String {
    let scheme = if is_dark { "dark" } else { "light" };
    let colours = colours(is_dark).map(|(name, colour)| format!("--{name}:{colour};"));
    format!("color-scheme:{scheme};{}", colours.collect::<String>())
}

/// Rules of pictures by class: the colour of an element is that of its role, and lines and dots are as strong as
/// they wait.
pub fn rules() -> String {
    let roles = LINES.iter().map(|role| format!("g.{role},rect.{role}{{color:var(--{role})}}"));
    let level = |level| {
        let line = format!("stroke:var(--w{level});stroke-width:{:.1}", width(level));
        format!(".w{level}{{{line}}}circle.w{level}{{fill:var(--w{level});stroke:none}}")
    };
    roles.chain((0..LEVELS).map(level)).collect()
}

/// Both themes for a picture that stands alone: by the reader's preference.
pub fn standalone() -> String {
    let (light, dark) = (variables(false), variables(true));
    format!(":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

/// Rules with the colours of the light theme in the place of their variables.
pub fn resolved(rules: &str) -> String {
    colours(false).fold(rules.to_owned(), |rules, (name, colour)| {
        rules.replace(&format!("var(--{name})"), &colour)
    })
}
