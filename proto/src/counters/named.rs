//! The macro of named counters: a table of variants becomes an enum.

/// Defines an enum of named counters from a table: variant, name, and one variant of the property's enum.
#[macro_export]
macro_rules! named_counters {
    (
        $(#[$meta:meta])* pub enum $counter:ident: $property:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal, $of:ident;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $counter { $($(#[$doc])* $variant,)* }

        impl $counter {
            /// Every row, in the order of the table.
            pub const ALL: &'static [$counter] = &[$($counter::$variant,)*];

            /// The name in results and metrics.
            pub const fn name(self) -> &'static str {
                match self { $($counter::$variant => $name,)* }
            }

            const fn property(self) -> $property {
                match self { $($counter::$variant => $property::$of,)* }
            }
        }
    };
}
