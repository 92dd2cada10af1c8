//! `verbs-agent`: serves one client on standard input and output, for instance over ssh.

use agent::ibverbs::Ibverbs;
use std::io::{self, Read, Write};
use verbs::CALL_LIMIT;
use verbs::line::{Lines, answer};

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut agent = Ibverbs::default();
    let mut lines = Lines::new(CALL_LIMIT);
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        lines.push(&buffer[..length]);
        while let Some(text) = lines.next_line() {
            if let Some(answer) = answer(&mut agent, &text) {
                output.write_all(&answer)?;
                output.flush()?;
            }
        }
    }
}
