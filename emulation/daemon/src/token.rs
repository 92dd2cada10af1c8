//! Tokens: the secret that the parts of a lab authenticate with, its file, its comparison, and signatures with it.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Random octets of a token: 128 bits.
pub const OCTETS: usize = 16;

/// Random octets.
///
/// # Errors
/// If the kernel gives none.
pub fn random() -> io::Result<[u8; OCTETS]> {
    let mut octets = [0; OCTETS];
    fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(octets)
}

/// A secret as hexadecimal text. Compare with [`Token::is`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token(String);

impl Token {
    /// Generates a token.
    ///
    /// # Errors
    /// If the kernel gives no random octets.
    pub fn make() -> io::Result<Token> {
        Ok(Token(hexadecimal(&random()?)))
    }

    /// A token generated elsewhere.
    pub fn new(text: &str) -> Token {
        Token(text.to_owned())
    }

    /// A signature of `parts` for one `purpose`: HMAC-SHA-256 with the token as key, as hexadecimal text. It proves the
    /// token without showing it. Source: RFC 2104.
    pub fn sign(&self, purpose: &str, parts: &[&str]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("keys of any length");
        for part in [&[purpose], parts].concat() {
            // The length separates a part from the next.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        hexadecimal(&mac.finalize().into_bytes())
    }

    /// Whether `signature` is that of [`Token::sign`]. An empty token has signed nothing.
    pub fn has_signed(&self, purpose: &str, parts: &[&str], signature: &str) -> bool {
        !self.0.is_empty() && Token(self.sign(purpose, parts)).is(signature)
    }

    /// A token that follows from this one and permits reading only. Its holder cannot compute this one.
    pub fn read_only(&self) -> Token {
        if self.0.is_empty() { self.clone() } else { Token(self.sign("pausebed reads", &[])) }
    }

    /// Writes the token to `file`, which must not exist, readable by this user only.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(file, "{}", self.0)
    }

    /// The token as text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `text` is this token. An empty token equals nothing. The time of the comparison does not depend
    /// on where the texts differ.
    pub fn is(&self, text: &str) -> bool {
        let differ = self.0.bytes().zip(text.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        self.0.len() == text.len() && differ == 0 && !text.is_empty()
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Hides the secret in debug output.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_token_is_like_no_other_and_comes_back_from_a_file_of_this_users_alone() {
        let (token, other) = (Token::make().expect("octets"), Token::make().expect("octets"));
        assert!(token.is(token.text()) && !token.is(other.text()));
        assert!(!token.is("") && !token.is(&token.text()[1..]));
        assert!(!token.is(&format!("{}x", token.text())));
        assert!(!format!("{token:?}").contains(token.text()));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        token.write(&file).expect("there is none");
        assert!(token.write(&file).is_err(), "it is written once");
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(token.is(text.trim()));
        assert!(!Token::new("").is(""), "an empty token is not a secret");
    }

    /// RFC 4231, test case 2, over the same octets.
    #[test]
    fn a_signature_is_of_one_token_one_purpose_and_these_parts() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").expect("keys of any length");
        mac.update(b"what do ya want for nothing?");
        assert!(hexadecimal(&mac.finalize().into_bytes()).starts_with("5bdcc146bf60754e6a042426"));
        let token = Token::new("secret");
        let signed = token.sign("join", &["a", "bc"]);
        assert!(token.has_signed("join", &["a", "bc"], &signed));
        assert!(!token.has_signed("configure", &["a", "bc"], &signed));
        assert!(!token.has_signed("join", &["ab", "c"], &signed), "parts are separate");
        assert!(!Token::new("other").has_signed("join", &["a", "bc"], &signed));
        let none = Token::new("");
        assert!(!none.has_signed("join", &["a"], &none.sign("join", &["a"])));
    }
}
