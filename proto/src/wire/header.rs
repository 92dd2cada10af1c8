//! What the pair of a header (view and owned form) has in common with every other pair.

/// Makes a header's view, and the parts of its owned form that follow from the view.
///
/// By hand remain what differs from header to header: the owned struct, the view's accessors,
/// `view.to_owned_header()` and `owned.to_octets()`.
macro_rules! header_pair {
    ($view:ident views $owned:ident, $layer:literal, $len:literal) => {
        #[doc = concat!("Reads the fields of a [`", stringify!($owned), "`] where they lie.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<T>(T);

        impl<T: AsRef<[u8]>> $view<T> {
            /// A view of the header that `octets` begin with.
            ///
            /// # Errors
            /// If the octets are fewer than the header's.
            pub fn new(octets: T) -> Result<Self, $crate::wire::error::ParseError> {
                let present = octets.as_ref().len();
                if present < $owned::LEN {
                    let offset = 0;
                    return Err($crate::wire::error::ParseError::short(
                        $layer,
                        offset,
                        $owned::LEN,
                        present,
                    ));
                }
                Ok($view(octets))
            }

            /// The octets, what follows the header included.
            pub fn into_inner(self) -> T {
                self.0
            }

            fn octets(&self) -> &[u8; $owned::LEN] {
                self.0.as_ref().first_chunk().expect("`new` saw that many octets")
            }
        }

        impl $owned {
            /// Octets on the wire.
            pub const LEN: usize = $len;

            /// What [`crate::wire::error::ParseError::layer`] calls the header.
            pub const LAYER: &'static str = $layer;

            /// Reads the header that `octets` begin with; its offset in errors is 0.
            ///
            /// # Errors
            /// If the octets are fewer than [`Self::LEN`].
            #[inline]
            pub fn parse(octets: &[u8]) -> Result<Self, $crate::wire::error::ParseError> {
                Ok($view::new(octets)?.to_owned_header())
            }

            /// Writes the header to the first [`Self::LEN`] of `octets`.
            ///
            /// # Panics
            /// If there are fewer.
            #[inline]
            pub fn emit(&self, octets: &mut [u8]) {
                octets[..Self::LEN].copy_from_slice(&self.to_octets());
            }
        }
    };
}

pub(crate) use header_pair;
