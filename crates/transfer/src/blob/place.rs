//! Where a blob is in a folder of files.
//!
//! A blob's name comes from whoever wrote it, and may be anything: `../../etc/passwd`, `C:\x`, a name with line breaks. So it is
//! the path of a file only if every part of it is an ordinary file name on every system. All other names are files in `%more`,
//! named by their hash. `%` never begins an ordinary path, so names can't meet the folder's own files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The folder of names that can't be paths.
const MORE: &str = "%more";
pub const INDEX: &str = "%index.jsonl";
pub const PARTS: &str = "%parts";
/// File systems take 255 bytes for a name; some tools add an ending.
const PART_BYTES_MAX: usize = 200;
const PATH_BYTES_MAX: usize = 900;

/// Whether a text is a path inside a folder that means the same on every system.
pub fn is_ordinary(path: &str) -> bool {
    !path.starts_with('%') && path.len() <= PATH_BYTES_MAX && path.split('/').all(is_ordinary_part)
}

fn is_ordinary_part(part: &str) -> bool {
    // Names that Windows keeps for devices, with any ending.
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_port = |kind: &str| {
        stem.strip_prefix(kind)
            .is_some_and(|number| number.len() == 1 && number.bytes().all(|b| b.is_ascii_digit()))
    };
    !part.is_empty()
        && part.len() <= PART_BYTES_MAX
        && !part.ends_with(['.', ' '])
        && !part.starts_with(' ')
        && !part.contains(|c: char| c.is_control() || r#"\:*?"<>|"#.contains(c))
        && !DEVICES.contains(&stem.as_str())
        && !is_port("com")
        && !is_port("lpt")
}

/// A path of the folder's own, as an index may name it: ordinary, or a hash in `%more`.
pub fn is_safe(path: &str) -> bool {
    match path.strip_prefix(MORE).and_then(|rest| rest.strip_prefix('/')) {
        Some(hash) => hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
        None => is_ordinary(path),
    }
}

pub fn in_folder(folder: &Path, path: &str) -> PathBuf {
    path.split('/').fold(folder.to_owned(), |folder, part| folder.join(part))
}

/// The paths that are taken, without their case: some file systems ignore it.
#[derive(Debug, Default)]
pub struct Taken {
    files: HashSet<u128>,
    folders: HashSet<u128>,
}

impl Taken {
    /// The path of a blob's file, which is taken from now on.
    pub fn place(&mut self, name: &str) -> String {
        let path = match is_ordinary(name) && self.is_free(name) {
            true => name.to_owned(),
            false => format!("{MORE}/{}", hex(&Sha256::digest(name))),
        };
        self.take(&path);
        path
    }

    pub fn take(&mut self, path: &str) {
        let path = path.to_lowercase();
        self.folders.extend(folders(&path).map(key));
        self.files.insert(key(&path));
    }

    /// Neither a file nor a folder has this name, and no file has that of a folder in it.
    fn is_free(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let whole = key(&path);
        !self.files.contains(&whole)
            && !self.folders.contains(&whole)
            && !folders(&path).any(|folder| self.files.contains(&key(folder)))
    }
}

/// `a/b/c` has `a` and `a/b`.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// A hash, because there may be millions of paths.
pub fn key(text: &str) -> u128 {
    let digest = Sha256::digest(text);
    u128::from_be_bytes(std::array::from_fn(|at| digest[at]))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_a_path_only_if_it_can_lead_nowhere_else() {
        for name in ["a", "a/b.txt", "2026/cat ü.jpg", ".hidden", "a..b", "con2", "x.con", "-rf", "a/%b", "~"]
        {
            assert!(is_ordinary(name), "{name}");
        }
        let (long, deep) = ("x".repeat(201), "ab/".repeat(301) + "c");
        for name in [
            "",
            ".",
            "..",
            "../a",
            "a/..",
            "a/../../b",
            "/a",
            "/etc/passwd",
            "a//b",
            "a/",
            "a/./b",
            "a\0",
            "a\nb",
            "C:/x",
            "a\\b",
            "..\\a",
            "a.",
            "a ",
            " a",
            "con",
            "NUL.txt",
            "com1",
            "LPT9.x",
            "%index.jsonl",
            "%more/x",
            "a*",
            "a?b",
            "<a>",
            &long,
            &deep,
        ] {
            assert!(!is_ordinary(name), "{name:?}");
            assert!(!is_safe(name), "{name:?}");
        }
        let hash = format!("%more/{}", "0a".repeat(32));
        assert!(is_safe(&hash));
        for path in ["%more/../x", "%more/x", &format!("{hash}/x"), &hash.to_uppercase(), "%parts/1"] {
            assert!(!is_safe(path), "{path}");
        }
    }

    #[test]
    fn two_blobs_never_have_one_file() {
        let mut taken = Taken::default();
        let mut place = |name: &str| taken.place(name).starts_with('%');
        assert!(!place("a/b"));
        assert!(place("A/B"), "the same without case");
        assert!(place("a/b/c"), "a file can't be a folder");
        assert!(place("a"), "a folder can't be a file");
        assert!(!place("a/d") && !place("b"));
        assert!(place("../x"));
    }

    proptest! {
        /// Whatever a blob is called, its file is inside the folder.
        #[test]
        fn a_file_is_inside_its_folder(name in r"[a/.\\%: \x00-\x1f]{0,12}|\PC{0,40}") {
            let path = Taken::default().place(&name);
            prop_assert!(is_safe(&path), "{path:?}");
            let whole = in_folder(Path::new("/folder"), &path);
            prop_assert!(whole.starts_with("/folder"));
            prop_assert!(whole.components().all(|part| !matches!(part, std::path::Component::ParentDir)));
        }
    }
}
