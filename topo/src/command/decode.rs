//! `pausebed decode [FILE|-]`: what frames are, layer by layer, and what is wrong with them.

use super::Exit;
use dissect::json::JsonSink;
use dissect::source::{self, Packet, Visitor};
use dissect::tree::TreeSink;
use dissect::{self, Fcs, Link, Rules};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Octets given to the output at once.
const WRITE_SIZE: usize = 1 << 20;

/// Options of `decode`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A capture (pcap, pcapng), or a text with frames in hex: one a line, or dumps with offsets
    /// (tcpdump -xx, xxd, Wireshark); `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// What hex holds (if left out, the octets tell), and captures of a link type nobody knows.
    #[arg(long, value_enum)]
    link: Option<Link>,
    /// Whether Ethernet frames end with an FCS.
    #[arg(long, value_enum, default_value_t = Fcs::Auto)]
    fcs: Fcs,
    /// Octets of payload above which a packet is called too long.
    #[arg(long, value_name = "OCTETS", default_value_t = 4096)]
    mtu: usize,
    /// One JSON object a line instead of a tree.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let input = match open(&options.file) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("{}: {error}", options.file.display());
            return Exit::Usage;
        }
    };
    let name = options.file.display().to_string();
    let rules = Rules::default().with_fcs(options.fcs).with_mtu(options.mtu);
    let mut printer = Printer {
        rules,
        is_json: options.json,
        json: JsonSink::default(),
        tree: TreeSink::default(),
        out: BufWriter::with_capacity(WRITE_SIZE, io::stdout().lock()),
        name: if name == "-" { "standard input".to_owned() } else { name },
        faults: 0,
    };
    let written =
        source::visit(input, options.link, &mut printer).and_then(|()| printer.out.flush());
    match written {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            eprintln!("cannot write: {error}");
            return Exit::Host;
        }
        Ok(()) => {}
    }
    if printer.faults > 0 { Exit::Failed } else { Exit::Good }
}

/// The file, or standard input for `-`.
///
/// # Errors
/// If it cannot be opened, or is a folder.
pub fn open(file: &Path) -> io::Result<Box<dyn Read>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let opened = File::open(file)?;
    if opened.metadata()?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    Ok(Box::new(opened))
}

struct Printer<W: Write> {
    rules: Rules,
    is_json: bool,
    json: JsonSink,
    tree: TreeSink,
    out: BufWriter<W>,
    name: String,
    faults: u64,
}

impl<W: Write> Visitor for Printer<W> {
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()> {
        let Packet { meta, octets, fcs } = packet;
        let fcs = if self.rules.fcs == Fcs::Auto { fcs } else { self.rules.fcs };
        let rules = self.rules.with_fcs(fcs);
        if self.is_json {
            self.json.begin(&meta);
            dissect::decode(&mut self.json, meta.link, octets, meta.wire_length, rules);
            self.out.write_all(self.json.finish())
        } else {
            self.tree.begin(&meta);
            dissect::decode(&mut self.tree, meta.link, octets, meta.wire_length, rules);
            self.out.write_all(self.tree.finish())
        }
    }

    fn unreadable(&mut self, what: &str) {
        self.faults += 1;
        eprintln!("{}: {what}", self.name);
    }
}
