//! Kernel modules of an image: which, in what order, and the tables that `modprobe` reads.
//!
//! Packages ship no `modules.dep`, which is made at installation. The modules themselves name what they depend on, in
//! their section `.modinfo`.

use super::compression::uncompressed;
use super::elf::module_facts;
use std::collections::{BTreeMap, BTreeSet};

/// Loaded at the start, before the state is saved. Variants of checksums come before what asks for them.
const LOADED: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "virtio_console",
    "crc32c_intel",
    "crc32c_generic",
    "crc32_pclmul",
    "crc32_generic",
    "rdma_rxe",
    "rdma_ucm",
];
/// Taken along if the kernel has them: bridges, traffic control, VLANs, congestion control of TCP, storage over RDMA.
const AVAILABLE: &[&str] = &[
    "8021q",
    "act_gact",
    "act_mirred",
    "act_pedit",
    "act_police",
    "act_skbedit",
    "act_vlan",
    "brd",
    "bridge",
    "cls_flower",
    "cls_fw",
    "cls_matchall",
    "cls_u32",
    "ext4",
    "ib_umad",
    "loop",
    "nfsd",
    "nfsv3",
    "nfsv4",
    "null_blk",
    "nvme_rdma",
    "nvmet",
    "nvmet_rdma",
    "rpcrdma",
    "sch_ets",
    "sch_fq",
    "sch_htb",
    "sch_ingress",
    "sch_mqprio",
    "sch_netem",
    "sch_prio",
    "sch_red",
    "sch_tbf",
    "siw",
    "tcp_bbr",
    "tcp_dctcp",
];

/// The names of all modules that an image is to have.
pub fn wanted() -> String {
    [LOADED, AVAILABLE].concat().join(" ")
}

/// The modules of an image.
#[derive(Debug, Default)]
pub struct Modules {
    /// Path below `lib/modules/RELEASE` and content, uncompressed, in an order in which they can be loaded.
    pub files: Vec<(String, Vec<u8>)>,
    /// How many of the first are loaded at the start.
    pub loaded: usize,
    /// The table `modules.dep`.
    pub dependencies: String,
    /// The table `modules.alias`.
    pub aliases: String,
}

impl Modules {
    /// Selects from all modules of a kernel. `builtin` is its table of that name.
    pub fn select(files: BTreeMap<String, Vec<u8>>, builtin: &str) -> Result<Modules, String> {
        let mut selection = Selection {
            paths: files.keys().filter_map(|path| Some((name_of(path)?, path.clone()))).collect(),
            files,
            builtin: builtin.lines().filter_map(name_of).collect(),
            needs: BTreeMap::new(),
            open: BTreeSet::new(),
            modules: Modules::default(),
        };
        for name in LOADED {
            // Variants for certain processors and generic ones move between kernels.
            selection.add(name, name.starts_with("crc32"))?;
        }
        selection.modules.loaded = selection.modules.files.len();
        for name in AVAILABLE {
            selection.add(name, true)?;
        }
        Ok(selection.finish())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }
}

struct Selection {
    files: BTreeMap<String, Vec<u8>>,
    paths: BTreeMap<String, String>,
    builtin: BTreeSet<String>,
    /// For each selected module its path, and all that must be loaded before it.
    needs: BTreeMap<String, (String, Vec<String>)>,
    open: BTreeSet<String>,
    modules: Modules,
}

impl Selection {
    /// Adds a module behind those it depends on.
    fn add(&mut self, name: &str, is_optional: bool) -> Result<(), String> {
        if self.needs.contains_key(name) || self.builtin.contains(name) || self.open.contains(name)
        {
            return Ok(());
        }
        let Some(path) = self.paths.get(name).cloned() else {
            return if is_optional {
                Ok(())
            } else {
                Err(format!("the kernel has no module {name}"))
            };
        };
        let bad = |why: String| format!("{path}: {why}");
        let content = uncompressed(&self.files[&path]).map_err(|error| bad(error.to_string()))?;
        let facts = module_facts(&content).ok_or_else(|| bad("no kernel module".to_owned()))?;
        self.open.insert(name.to_owned());
        let mut before = Vec::new();
        for (key, value) in &facts {
            let (names, is_soft): (Vec<&str>, bool) = match key.as_str() {
                "depends" => (value.split(',').filter(|name| !name.is_empty()).collect(), false),
                "softdep" => (before_softly(value), true),
                "alias" => {
                    self.modules.aliases.push_str(&format!("alias {value} {name}\n"));
                    continue;
                }
                _ => continue,
            };
            for needed in names.into_iter().map(|name| name.replace('-', "_")) {
                self.add(&needed, is_soft)?;
                if let Some((_, further)) = self.needs.get(&needed).filter(|_| !is_soft) {
                    before.extend(further.iter().cloned());
                    before.push(needed);
                }
            }
        }
        let mut seen = BTreeSet::new();
        before.retain(|name| seen.insert(name.clone()));
        let plain = path.trim_end_matches(".xz").trim_end_matches(".zst").to_owned();
        self.needs.insert(name.to_owned(), (plain.clone(), before));
        self.modules.files.push((plain, content));
        Ok(())
    }

    fn finish(mut self) -> Modules {
        for (path, before) in self.needs.values() {
            // The table names the last dependency first.
            let before = before.iter().rev().map(|name| format!(" {}", self.needs[name].0));
            self.modules.dependencies.push_str(&format!("{path}:{}\n", before.collect::<String>()));
        }
        self.modules
    }
}

/// The modules behind `pre:` in a soft dependency.
fn before_softly(text: &str) -> Vec<&str> {
    let mut is_before = false;
    let mut names = Vec::new();
    for word in text.split_whitespace() {
        match word {
            "pre:" => is_before = true,
            "post:" => is_before = false,
            name if is_before => names.push(name),
            _ => {}
        }
    }
    names
}

/// A module's name by its path.
fn name_of(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (name, end) = file.split_once(".ko")?;
    ["", ".xz", ".zst"].contains(&end).then(|| name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 64-bit ELF file with the sections `.modinfo` and `.shstrtab`.
    fn module(facts: &[&str]) -> Vec<u8> {
        let info: Vec<u8> =
            facts.iter().flat_map(|fact| [fact.as_bytes(), b"\0"].concat()).collect();
        let names = b"\0.modinfo\0.shstrtab\0";
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16] = 1;
        file[18] = 62;
        file[20] = 1;
        file[52] = 64;
        file[58] = 64;
        file[60] = 3;
        file[62] = 2;
        file.extend_from_slice(&info);
        file.extend_from_slice(names);
        let table = file.len() as u64;
        file[40..48].copy_from_slice(&table.to_le_bytes());
        let section = |name: u32, kind: u32, at: u64, length: usize| {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&at.to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            header
        };
        file.extend(section(0, 0, 0, 0));
        file.extend(section(1, 1, 64, info.len()));
        file.extend(section(10, 3, 64 + info.len() as u64, names.len()));
        file
    }

    fn kernel() -> BTreeMap<String, Vec<u8>> {
        let modules = [
            ("drivers/virtio/virtio_ring", "depends="),
            ("drivers/virtio/virtio_pci", "depends=virtio-ring"),
            ("drivers/net/virtio_net", "depends=virtio_ring,net_failover"),
            ("net/core/net_failover", "depends="),
            ("drivers/char/virtio_console", "depends=virtio_ring"),
            ("arch/x86/crypto/crc32-pclmul", "alias=crypto-crc32"),
            ("drivers/infiniband/sw/rxe/rdma_rxe", "depends=ib_core,libcrc32c"),
            ("drivers/infiniband/core/ib_core", "depends="),
            ("drivers/infiniband/core/rdma_ucm", "depends=ib_core"),
            ("lib/libcrc32c", "softdep=pre: crc32c post: other"),
            ("sound/snd", "depends="),
        ];
        modules
            .map(|(path, fact)| (format!("kernel/{path}.ko"), module(&["license=GPL", fact])))
            .into()
    }

    #[test]
    fn what_a_module_needs_comes_first() {
        let modules = Modules::select(kernel(), "kernel/crypto/crc32_generic.ko\n").unwrap();
        let at = |name: &str| {
            modules.files.iter().position(|(path, _)| path.ends_with(&format!("/{name}.ko")))
        };
        assert!(at("virtio_ring") < at("virtio_pci") && at("net_failover") < at("virtio_net"));
        assert!(at("crc32-pclmul").is_some() && at("crc32-pclmul") < at("rdma_rxe"));
        assert!(at("libcrc32c").is_some() && at("snd").is_none());
        assert_eq!(modules.loaded, modules.len());
        let line = "kernel/drivers/net/virtio_net.ko: kernel/net/core/net_failover.ko kernel/drivers/virtio/virtio_ring.ko\n";
        assert!(modules.dependencies.contains(line), "{}", modules.dependencies);
        assert_eq!(modules.aliases, "alias crypto-crc32 crc32_pclmul\n");
    }

    #[test]
    fn a_kernel_without_soft_roce_is_refused() {
        let mut files = kernel();
        files.remove("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko");
        assert_eq!(Modules::select(files, "").unwrap_err(), "the kernel has no module rdma_rxe");
    }

    #[test]
    fn a_circle_of_dependencies_ends() {
        let mut files = kernel();
        files.insert("kernel/lib/libcrc32c.ko".into(), module(&["depends=rdma_rxe"]));
        assert!(Modules::select(files, "").is_ok());
    }
}
