//! How much memory the caches take if no setting says so: a quarter of what this process may use, within bounds.

use std::fs;
use std::path::{Path, PathBuf};

const MIB: u64 = 1024 * 1024;
/// Enough to work with on the smallest machines.
const CACHE_MIB_MIN: u64 = 64;
/// Above this, the operating system's own cache of files serves about as well.
const CACHE_MIB_MAX: u64 = 4096;

pub(super) fn default_cache_mib() -> usize {
    let machine = rustix::system::sysinfo();
    let machine = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    cache_mib(machine, group_limit(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")))
}

fn cache_mib(machine: u64, limit: Option<u64>) -> usize {
    let memory = limit.map_or(machine, |limit| limit.min(machine));
    let mib = (memory / 4 / MIB).clamp(CACHE_MIB_MIN, CACHE_MIB_MAX);
    usize::try_from(mib).unwrap_or(CACHE_MIB_MIN as usize)
}

/// The smallest limit of the control groups that this process is in: containers and systemd's `MemoryMax` set one.
/// `None` if there is none, or none that can be read.
fn group_limit(groups: &Path, mounted: &Path) -> Option<u64> {
    let groups = fs::read_to_string(groups).ok()?;
    groups
        .lines()
        .filter_map(|line| {
            // Number, controllers, path. Version 2 has one line without controllers.
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let (root, file) = match controllers {
                "" => (mounted.to_owned(), "memory.max"),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    (mounted.join("memory"), "memory.limit_in_bytes")
                }
                _ => return None,
            };
            smallest_above(&root, path, file)
        })
        .min()
}

/// The smallest number in the files of this name, from the group at `path` up to the root. A group without a limit says
/// "max", which is not a number.
fn smallest_above(root: &Path, path: &str, file: &str) -> Option<u64> {
    let mut group: PathBuf = root.join(path.trim_start_matches('/'));
    let mut smallest = None;
    while group.starts_with(root) {
        let limit =
            fs::read_to_string(group.join(file)).ok().and_then(|text| text.trim().parse::<u64>().ok());
        smallest = smallest.into_iter().chain(limit).min();
        if !group.pop() {
            break;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caches_take_a_quarter_of_the_memory_within_bounds() {
        let gib = 1024 * MIB;
        for (machine, limit, expected) in [
            (24 * gib, None, 4096),
            (8 * gib, None, 2048),
            (8 * gib, Some(2 * gib), 512),
            (gib, Some(u64::MAX), 256),
            (512 * MIB, None, 128),
            (gib, Some(100 * MIB), 64),
        ] {
            assert_eq!(cache_mib(machine, limit), expected, "{machine} {limit:?}");
        }
    }

    #[test]
    fn the_limit_is_the_smallest_of_the_groups_above() {
        let directory = tempfile::tempdir().unwrap();
        let (groups, mounted) = (directory.path().join("cgroup"), directory.path().join("mounted"));
        let write = |path: &str, text: &str| {
            let path = mounted.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("memory.max", "max\n");
        write("system/memory.max", "900\n");
        write("system/partita/memory.max", "max\n");
        write("other/memory.max", "100\n");
        write("memory/a/b/memory.limit_in_bytes", "700\n");
        write("memory/a/memory.limit_in_bytes", "500\n");
        for (listed, expected) in [
            ("0::/system/partita\n", Some(900)),
            ("0::/\n", None),
            ("0::/gone\n", None),
            ("4:cpu,memory:/a/b\n0::/system\n", Some(500)),
            ("4:cpu:/a/b\n", None),
            ("not a list", None),
        ] {
            fs::write(&groups, listed).unwrap();
            assert_eq!(group_limit(&groups, &mounted), expected, "{listed}");
        }
        assert_eq!(group_limit(&mounted.join("missing"), &mounted), None);
    }
}
