//! Names and their inodes. A name belongs to its directory, not to a path, so the contents of a directory follow it
//! when it is renamed.

use std::collections::BTreeMap;

/// The root's inode, and its path.
pub const ROOT_INODE: usize = 0;
pub const ROOT: &str = "";

/// The inode of a directory, and a name in it.
pub type Place = (usize, String);

#[derive(Clone, Debug, Default)]
pub struct Tree(BTreeMap<Place, usize>);

impl Tree {
    /// The inode of a path.
    pub fn find(&self, path: &str) -> Option<usize> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names
            .into_iter()
            .try_fold(ROOT_INODE, |directory, name| self.0.get(&(directory, name.to_owned())).copied())
    }

    /// The place of a path's last name, if its directory exists.
    pub fn place(&self, path: &str) -> Option<Place> {
        let (directory, name) = path.rsplit_once('/').unwrap_or((ROOT, path));
        Some((self.find(directory)?, name.to_owned()))
    }

    /// Sets names to their inodes, or removes them.
    pub fn change(&mut self, entries: &[(Place, Option<usize>)]) {
        for (place, inode) in entries {
            match inode {
                Some(inode) => self.0.insert(place.clone(), *inode),
                None => self.0.remove(place),
            };
        }
    }

    pub fn inodes(&self) -> impl Iterator<Item = usize> {
        self.0.values().copied()
    }

    /// Every path with its inode, each directory before its contents. The contents of a directory without a name are
    /// left out.
    pub fn paths(&self) -> Vec<(String, usize)> {
        let mut paths = vec![(ROOT.to_owned(), ROOT_INODE)];
        let mut next = 0;
        while next < paths.len() {
            let (path, directory) = paths[next].clone();
            let separator = if path == ROOT { "" } else { "/" };
            let held = self.0.range((directory, String::new())..(directory + 1, String::new()));
            paths.extend(held.map(|((_, name), inode)| (format!("{path}{separator}{name}"), *inode)));
            next += 1;
        }
        paths.split_off(1)
    }
}
