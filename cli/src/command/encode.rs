//! `pausebed encode [FILE|-]`: converts lines of JSON, as `decode` writes them, to hex or a capture.

use super::decode::open;
use crate::exit::{Exit, Failure, Outcome};
use capture::pcapng::{self, LinkType};
use dissect::{Encoded, source};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

/// The longest line, in octets.
const LINE_MAX: usize = 64 << 20;

/// Options of `encode`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Lines of JSON, one for each frame; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Hex)]
    to: Format,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The format of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Hexadecimal digits, one line for each frame.
    Hex,
    /// A capture with timestamps in nanoseconds.
    Pcapng,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let terminal = options.out.is_none() && io::stdout().is_terminal();
    if options.to == Format::Pcapng && terminal {
        return Err(Failure::usage(
            "a capture cannot be shown on a terminal: use --out FILE or a pipe",
        ));
    }
    let input = open(&options.file)?;
    let out: Box<dyn Write> = match &options.out {
        None => Box::new(io::stdout().lock()),
        Some(path) => Box::new(File::create(path).map_err(Failure::cannot_write(path))?),
    };
    let mut writer = Writer::new(options.to, BufWriter::with_capacity(1 << 20, out));
    match encode_lines(BufReader::with_capacity(1 << 20, input), &mut writer) {
        Ok(0) => Ok(Exit::Good),
        Ok(_) => Ok(Exit::Usage),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Good),
        Err(error) => Err(Failure::host(error)),
    }
}

/// Encodes all valid lines, prints the faults of the others, and returns the number of faults.
fn encode_lines(mut input: impl io::BufRead, writer: &mut Writer<impl Write>) -> io::Result<u64> {
    let mut line = Vec::new();
    let mut faults = 0;
    for number in 1u64.. {
        line.clear();
        if !source::next_line(&mut input, &mut line, LINE_MAX)? {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let encoded = match std::str::from_utf8(&line) {
            _ if line.len() > LINE_MAX => Err(format!("longer than {LINE_MAX} octets")),
            Ok(text) => dissect::encode(text).map_err(|fault| fault.to_string()),
            Err(_) => Err("not UTF-8".to_owned()),
        };
        match encoded {
            Ok(frame) => writer.frame(&frame)?,
            Err(fault) => {
                faults += 1;
                eprintln!("line {number}: {fault}");
            }
        }
    }
    writer.out.flush()?;
    Ok(faults)
}

struct Writer<W: Write> {
    format: Format,
    out: W,
    buffer: Vec<u8>,
    /// The numbers of the interfaces of the capture, by name and link type.
    interfaces: BTreeMap<(String, u16), u32>,
    has_begun: bool,
}

impl<W: Write> Writer<W> {
    fn new(format: Format, out: W) -> Writer<W> {
        Writer { format, out, buffer: Vec::new(), interfaces: BTreeMap::new(), has_begun: false }
    }

    fn frame(&mut self, frame: &Encoded) -> io::Result<()> {
        self.buffer.clear();
        match self.format {
            Format::Hex => {
                dissect::digits::hex(&mut self.buffer, &frame.octets);
                self.buffer.push(b'\n');
            }
            Format::Pcapng => self.packet(frame),
        }
        self.out.write_all(&self.buffer)
    }

    fn packet(&mut self, frame: &Encoded) {
        if !std::mem::replace(&mut self.has_begun, true) {
            pcapng::section(&mut self.buffer, "made by pausebed encode");
        }
        let link_type = match frame {
            Encoded { is_ethernet: true, .. } => LinkType::Ethernet,
            Encoded { is_link_packet: true, .. } => LinkType::User0,
            _ => LinkType::Erf,
        };
        let interface = self.interface(frame, link_type);
        let wire_size = frame.wire_length.unwrap_or(0).max(frame.octets.len());
        let packet = pcapng::Packet {
            interface,
            link_type,
            at_ns: frame.at_ns,
            octets: &frame.octets,
            wire_size,
            direction: frame.direction,
            dropped_before: 0,
        };
        pcapng::packet(&mut self.buffer, &packet);
    }

    /// The number of the interface of a frame; a new one is written first.
    fn interface(&mut self, frame: &Encoded, link_type: LinkType) -> u32 {
        let unnamed = match link_type {
            LinkType::Ethernet => "ethernet",
            LinkType::Erf | LinkType::Infiniband => "infiniband",
            LinkType::User0 => "infiniband/link",
        };
        let name = frame.interface.as_deref().unwrap_or(unnamed).to_owned();
        let next = self.interfaces.len() as u32;
        let key = (name, link_type as u16);
        if let Some(number) = self.interfaces.get(&key) {
            return *number;
        }
        let description = "from JSON";
        let (name, snaplen, speed) = (&key.0, 0, 0);
        let described = pcapng::Interface { link_type, snaplen, name, description, speed };
        pcapng::interface(&mut self.buffer, &described);
        self.interfaces.insert(key, next);
        next
    }
}
