//! The table of what a client has made. Objects have handles, and end in the reverse order of their making.

use crate::answer::Refusal;
use crate::attributes::Handle;
use std::collections::BTreeMap;

/// Objects of a client at most.
pub const OBJECTS_MAX: usize = 4096;

/// A table of objects, each with those that it needs.
#[derive(Debug)]
pub struct Objects<T> {
    all: BTreeMap<Handle, (T, Vec<Handle>)>,
    last: Handle,
}

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects { all: BTreeMap::new(), last: 0 }
    }
}

impl<T> Objects<T> {
    /// Refuses one object too many.
    ///
    /// # Errors
    /// If so.
    pub fn has_room(&self) -> Result<(), Refusal> {
        if self.all.len() < OBJECTS_MAX {
            return Ok(());
        }
        Err(Refusal::limit(format!("a client has at most {OBJECTS_MAX} objects")))
    }

    /// Adds an object that needs others; its handle.
    pub fn add(&mut self, object: T, needs: &[Handle]) -> Handle {
        self.last += 1;
        self.all.insert(self.last, (object, needs.to_vec()));
        self.last
    }

    /// The object with this handle, as `kind` finds it to be.
    ///
    /// # Errors
    /// If there is none of that kind, which `word` names.
    pub fn find<'a, R: 'a>(
        &'a mut self,
        handle: Handle,
        word: &str,
        kind: impl FnOnce(&'a mut T) -> Option<R>,
    ) -> Result<R, Refusal> {
        let found = self.all.get_mut(&handle).and_then(|(object, _)| kind(object));
        found.ok_or_else(|| Refusal::unknown(word, handle))
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|(object, _)| object)
    }

    /// An object that nothing needs, so that it may end.
    ///
    /// # Errors
    /// If there is none, or another needs it.
    pub fn to_end(&mut self, handle: Handle) -> Result<&mut T, Refusal> {
        if let Some((user, _)) = self.all.iter().find(|(_, (_, needs))| needs.contains(&handle)) {
            return Err(Refusal::new("busy", format!("object {user} needs object {handle}")));
        }
        self.find(handle, "object", Some)
    }

    /// Removes an object.
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        self.all.remove(&handle).map(|(object, _)| object)
    }

    /// The handle of the newest object.
    pub fn newest(&self) -> Option<Handle> {
        self.all.last_key_value().map(|(handle, _)| *handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_object_needs_cannot_end() {
        let mut objects = Objects::default();
        let device = objects.add('d', &[]);
        let domain = objects.add('p', &[device]);
        assert_eq!(objects.to_end(device).map(|_| ()).unwrap_err().name, "busy");
        assert_eq!(objects.to_end(domain), Ok(&mut 'p'));
        assert_eq!(objects.newest(), Some(domain));
        assert_eq!(objects.remove(domain), Some('p'));
        assert_eq!(objects.to_end(domain).unwrap_err().name, "unknown");
        let is_device = |object: &mut char| (*object == 'd').then_some(());
        assert_eq!(objects.find(device, "device", is_device), Ok(()));
        assert!(objects.add('p', &[device]) > domain, "a handle is not used again");
    }
}
