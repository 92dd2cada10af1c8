//! Axes with their values, and the points of the grid.

/// One axis. Several keys may change together along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name in tables and pictures.
    pub name: String,
    /// Its values.
    pub steps: Vec<Step>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub label: String,
    /// Overrides, as `key=value`.
    pub sets: Vec<String>,
}

/// A value of every axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The name of the value on each axis.
    pub labels: Vec<String>,
    /// All overrides, as `key=value`.
    pub sets: Vec<String>,
}

/// The axis of an option `key=a,b,c`; `None` if it has one value only.
pub fn axis_of_option(set: &str) -> Option<Axis> {
    let (key, values) = set.split_once('=')?;
    let values = split(values);
    if values.len() < 2 {
        return None;
    }
    let key = key.trim();
    let step = |value: &str| Step {
        label: value.trim().trim_matches('"').to_owned(),
        sets: vec![format!("{key}={}", value.trim())],
    };
    Some(Axis { name: key.to_owned(), steps: values.into_iter().map(step).collect() })
}

/// Splits at commas outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quoted) = (Vec::new(), 0, 0i32, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// All combinations of values; the last axis varies fastest.
pub fn points(axes: &[Axis]) -> Vec<Point> {
    let mut points = vec![Point { labels: Vec::new(), sets: Vec::new() }];
    for axis in axes {
        points = points
            .iter()
            .flat_map(|point| {
                axis.steps.iter().map(|step| {
                    let mut point = point.clone();
                    point.labels.push(step.label.clone());
                    point.sets.extend(step.sets.iter().cloned());
                    point
                })
            })
            .collect();
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_with_several_values_is_an_axis() {
        let axis = axis_of_option("scheme.gd=1/600000, 2/600000").expect("two values");
        assert_eq!(axis.name, "scheme.gd");
        let sets: Vec<_> = axis.steps.iter().flat_map(|step| &step.sets).collect();
        assert_eq!(sets, ["scheme.gd=1/600000", "scheme.gd=2/600000"]);
        assert_eq!(axis_of_option("run.seed=8"), None);
        assert_eq!(axis_of_option("fabric.m=[4,8]"), None, "a list is one value");
        let lists = axis_of_option("fabric.m=[4,8],[2,2]").expect("two lists");
        assert_eq!(lists.steps[1].sets, ["fabric.m=[2,2]"]);
        let quoted = axis_of_option("say=\"a, b\",\"c\"").expect("two texts");
        assert_eq!(quoted.steps[0].label, "a, b");
    }

    #[test]
    fn the_last_axis_turns_fastest() {
        let axes = ["a=1,2", "b=x,y,z"].map(|set| axis_of_option(set).expect("an axis"));
        let points = points(&axes);
        let labels: Vec<String> = points.iter().map(|point| point.labels.join("")).collect();
        assert_eq!(labels, ["1x", "1y", "1z", "2x", "2y", "2z"]);
        assert_eq!(points[4].sets, ["a=2", "b=y"]);
    }
}
