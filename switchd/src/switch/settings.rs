//! Settings that an operator changes while the switch runs: parameters of the scheme's congestion points, thresholds of the
//! memory, and how traffic classes are selected. All of a change are checked before any is applied.

use super::build::points;
use super::{ConfigError, Switch, buffers};
use crate::config::SwitchConfig;
use crate::memory::ingress::Room;
use crate::memory::models;
use proto::ids::PortNumber;
use proto::link::Selection;
use proto::params;
use proto::units::Bytes;
use toml::{Table, Value};

proto::params! {
    /// What can change of a link.
    struct LinkSettings {
        /// For each of the eight traffic classes: "strict", or its weight.
        scheduling: Vec<Selection> = Selection::EACH, Required;
    }
}

proto::params! {
    /// What can change of the memory besides the parameters of its model.
    struct MemorySettings {
        /// Octets that may still come in after a neighbour was paused.
        headroom: Option<Bytes> = Size, Optional;
    }
}

impl Switch {
    /// Changes `settings`, those of a link at `port` or at all ports.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub(super) fn change_settings(
        &mut self,
        settings: &Table,
        port: Option<PortNumber>,
    ) -> Result<(), ConfigError> {
        let mut config = (*self.blueprint).clone();
        let mut selection = None;
        for (section, values) in settings {
            let Value::Table(values) = values else {
                return Err(ConfigError::Setting(section.clone()));
            };
            match section.as_str() {
                "scheme" => config.scheme.params.extend(values.clone()),
                "switch" => change_memory(&mut config, values)?,
                "link" => selection = Some(read_selection(values)?),
                _ => return Err(ConfigError::Setting(section.clone())),
            }
        }
        let chosen = port.map_or(0..self.ports.len(), |port| port.index()..port.index() + 1);
        let ports = self.ports.get_mut(chosen).ok_or(ConfigError::Effectless("a missing port"))?;
        if selection.is_some() && self.memory.is_none() {
            return Err(ConfigError::Effectless("link.scheduling"));
        }
        let roles = config.scheme.roles()?;
        match &mut self.memory {
            Some(memory) if config.memory != self.blueprint.memory => {
                let ingress = buffers::ingress(&config);
                memory.change(Room { ingress: &ingress, numbers: &config.memory })?;
            }
            None if config.memory != self.blueprint.memory => {
                return Err(ConfigError::Effectless("switch"));
            }
            _ => {}
        }
        // Nothing fails from here on.
        selection
            .iter()
            .for_each(|selection| ports.iter_mut().for_each(|port| port.select(selection)));
        if config.scheme != self.blueprint.scheme {
            for (port, egress) in self.ports.iter().zip(&mut self.egress) {
                egress.set_points(points(&config, &*roles, port));
            }
        }
        *self.blueprint = config;
        Ok(())
    }
}

/// Sets what `values` names of the memory: parameters of the model in "pool", and the headroom.
fn change_memory(config: &mut SwitchConfig, values: &Table) -> Result<(), ConfigError> {
    let mut values = values.clone();
    if let Some(pool) = values.remove("pool") {
        let has_section =
            models::find(&config.memory.kind).is_some_and(|model| model.section.is_some());
        match pool {
            Value::Table(pool) if has_section => config.memory.params.extend(pool),
            _ => return Err(ConfigError::Effectless("switch.pool")),
        }
    }
    let MemorySettings { headroom } = params::read(&values).map_err(ConfigError::Value)?;
    config.memory.headroom = headroom.unwrap_or(config.memory.headroom);
    Ok(())
}

fn read_selection(values: &Table) -> Result<[Selection; 8], ConfigError> {
    let LinkSettings { scheduling } = params::read(values).map_err(ConfigError::Value)?;
    scheduling
        .try_into()
        .map_err(|_| ConfigError::Setting("link.scheduling of another length".to_owned()))
}
