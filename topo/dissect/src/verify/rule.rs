//! A rule, and the declaration of the rules of a family.

/// One rule, as the table of findings names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A short word that stays the same in all versions.
    pub id: &'static str,
    /// What it requires, in one sentence.
    pub title: &'static str,
    /// The clause that requires it.
    pub source: &'static str,
}

/// Declares the rules of a family: constant, id, what it requires, the clause; and `RULES` with all of them.
macro_rules! rules {
    ($($rule:ident $id:literal $title:literal, $source:literal;)*) => {
        /// The rules of this file.
        pub(super) const RULES: &[$crate::verify::rule::Rule] = &[$($rule),*];
        $(const $rule: $crate::verify::rule::Rule =
            $crate::verify::rule::Rule { id: $id, title: $title, source: $source };)*
    };
}

pub(super) use rules;
