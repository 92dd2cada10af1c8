//! Tokens: the secret that the parts of a lab authenticate with, its file, and its comparison.

use serde::{Deserialize, Serialize};
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
        let octets = random()?;
        Ok(Token(octets.iter().map(|octet| format!("{octet:02x}")).collect()))
    }

    /// A token generated elsewhere.
    pub fn new(text: &str) -> Token {
        Token(text.to_owned())
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
        assert!(!Token::new("").is(""), "an empty token is no secret");
    }
}
