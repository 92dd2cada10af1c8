//! `pausebed decode [FILE|-]`: the content of frames, layer by layer, and their faults.

use crate::exit::{Exit, Failure, Outcome};
use dissect::json::JsonSink;
use dissect::source::{self, Packet, Visitor};
use dissect::tree::TreeSink;
use dissect::{Fcs, Rules};
use proto::technology::Technology;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Octets of one write to the output.
const WRITE_SIZE: usize = 1 << 20;

/// Options of `decode`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A capture (pcap, pcapng), or a text with frames in hex: one a line, or dumps with offsets
    /// (tcpdump -xx, xxd, Wireshark); `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// The link type of hex (default: found from the octets), and of captures with an unknown link type.
    #[arg(long, value_enum)]
    link: Option<Link>,
    /// Whether Ethernet frames end with an FCS.
    #[arg(long, value_enum, default_value_t = Fcs::Auto)]
    fcs: Fcs,
    /// The largest payload in octets; longer packets are reported.
    #[arg(long, value_name = "OCTETS", default_value_t = 4096)]
    mtu: usize,
    /// One JSON object a line instead of a tree.
    #[arg(long)]
    json: bool,
}

/// Words of `--link`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Link {
    /// Packets from LRH to VCRC, and link packets of six octets.
    Infiniband,
    /// Frames from the destination address on, with or without FCS.
    Ethernet,
}

impl Link {
    fn technology(self) -> Technology {
        match self {
            Link::Infiniband => Technology::Infiniband,
            Link::Ethernet => Technology::Ethernet,
        }
    }
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let input = open(&options.file)?;
    let name = options.file.display().to_string();
    let rules = Rules { fcs: options.fcs, mtu: options.mtu };
    let mut printer = Printer {
        rules,
        is_json: options.json,
        json: JsonSink::default(),
        tree: TreeSink::default(),
        out: BufWriter::with_capacity(WRITE_SIZE, io::stdout().lock()),
        name: if name == "-" { "standard input".to_owned() } else { name },
        faults: 0,
    };
    let written = source::visit(input, options.link.map(Link::technology), &mut printer)
        .and_then(|()| printer.out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Failure::host(format!("cannot write: {error}")));
        }
        // A closed pipe is not an error: the reader needs no more.
        _ => {}
    }
    Ok(if printer.faults > 0 { Exit::Failed } else { Exit::Good })
}

/// The file, or standard input for `-`.
///
/// # Errors
/// If it cannot be opened, or is a folder.
pub(super) fn open(file: &Path) -> Result<Box<dyn Read>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let open = || -> io::Result<File> {
        let opened = File::open(file)?;
        if opened.metadata()?.is_dir() { Err(ErrorKind::IsADirectory.into()) } else { Ok(opened) }
    };
    Ok(Box::new(open().map_err(Failure::bad_file(file))?))
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
        let rules = Rules { fcs, ..self.rules };
        if self.is_json {
            self.json.begin(&meta);
            dissect::decode(&mut self.json, meta.technology, octets, meta.wire_length, rules);
            self.out.write_all(self.json.finish())
        } else {
            self.tree.begin(&meta);
            dissect::decode(&mut self.tree, meta.technology, octets, meta.wire_length, rules);
            self.out.write_all(self.tree.finish())
        }
    }

    fn unreadable(&mut self, what: &str) {
        self.faults += 1;
        eprintln!("{}: {what}", self.name);
    }
}
