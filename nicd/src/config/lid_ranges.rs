//! Lists of LIDs as text: LIDs that follow each other are `[FIRST, LAST]`. Each of n NICs lists n adapters.

use proto::ids::Lid;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Item {
    One(Lid),
    Range(Lid, Lid),
}

pub fn serialize<S: Serializer>(lids: &[Lid], serializer: S) -> Result<S::Ok, S::Error> {
    let follow = |a: &Lid, b: &Lid| a.get().checked_add(1) == Some(b.get());
    let items = lids.chunk_by(follow).map(|run| match run {
        [one] => Item::One(*one),
        run => Item::Range(run[0], run[run.len() - 1]),
    });
    serializer.collect_seq(items)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Lid>, D::Error> {
    let mut lids = Vec::new();
    for item in Vec::<Item>::deserialize(deserializer)? {
        match item {
            Item::One(lid) => lids.push(lid),
            Item::Range(first, last) if first <= last => {
                lids.extend((first.get()..=last.get()).map(Lid::new));
            }
            Item::Range(first, last) => {
                return Err(D::Error::custom(format!("LID {last} comes before LID {first}")));
            }
        }
    }
    Ok(lids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Text {
        #[serde(with = "super")]
        lids: Vec<Lid>,
    }

    #[test]
    fn runs_are_ranges_in_the_text_and_orders_stay() {
        let lids = [7, 1, 2, 3, 9, 8, 65_534, 65_535].map(Lid::new).to_vec();
        let text = toml::to_string(&Text { lids }).expect("a list");
        assert_eq!(text.trim(), "lids = [7, [1, 3], 9, 8, [65534, 65535]]");
        let read: Text = toml::from_str(&text).expect("what was written");
        assert_eq!(read.lids, [7, 1, 2, 3, 9, 8, 65_534, 65_535].map(Lid::new));
        let error = toml::from_str::<Text>("lids = [[3, 1]]").expect_err("an empty range");
        assert!(error.to_string().contains("LID 1 comes before LID 3"), "{error}");
    }
}
