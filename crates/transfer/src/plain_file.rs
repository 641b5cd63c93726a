//! Opens and makes files of a folder that somebody else may have made.
//!
//! A link in it could lead to any file of this machine, whose content would then be uploaded or overwritten, and a pipe would
//! never end. So only ordinary files are opened, and no part of their path below the folder may be a link. The folder itself,
//! which the user has named, may be one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path};

/// Opens a file below a folder.
pub fn open(folder: &Path, path: &Path) -> io::Result<File> {
    let below = below(folder, path)?;
    let mut at = folder.to_owned();
    let mut kind = None;
    for part in below.components() {
        at.push(part);
        let found = fs::symlink_metadata(&at)?.file_type();
        if found.is_symlink() {
            return Err(refusal("links are not followed, and it is one or is behind one"));
        }
        kind = Some(found);
    }
    match kind {
        Some(kind) if kind.is_file() => File::open(path),
        _ => Err(refusal("it is not an ordinary file")),
    }
}

/// Makes the folders of a path below a folder, as far as they are missing.
pub fn make_folders(folder: &Path, path: &Path) -> io::Result<()> {
    let below = below(folder, path)?;
    let mut at = folder.to_owned();
    for part in below.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match fs::create_dir(&at) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_folder(&at) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(refusal("a part of its path is a link or a file, not a folder"));
            }
            made => made?,
        }
    }
    Ok(())
}

/// An empty folder; what had its name is removed. A link is, not what it leads to.
pub fn make_empty(folder: &Path) -> io::Result<()> {
    let removed = if is_folder(folder) { fs::remove_dir_all(folder) } else { fs::remove_file(folder) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::create_dir(folder),
    }
}

/// Whether it is a folder, and no link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The part of a path below a folder. It never leads up again with `..`.
fn below<'a>(folder: &Path, path: &'a Path) -> io::Result<&'a Path> {
    match path.strip_prefix(folder) {
        Ok(below) if below.components().all(|part| matches!(part, Component::Normal(_))) => Ok(below),
        _ => Err(refusal("it is not inside its folder")),
    }
}

fn refusal(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_ordinary_files_that_no_link_leads_to_are_opened() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("folder");
        fs::create_dir_all(folder.join("real")).unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::write(folder.join("real/file"), "f").unwrap();
        symlink("../secret", folder.join("link")).unwrap();
        symlink("real", folder.join("behind")).unwrap();
        let _socket = UnixListener::bind(folder.join("socket")).unwrap();
        assert!(open(&folder, &folder.join("real/file")).is_ok());
        for (path, why) in
            [("link", "links"), ("behind/file", "links"), ("socket", "ordinary"), ("real", "ordinary")]
        {
            let error = open(&folder, &folder.join(path)).unwrap_err().to_string();
            assert!(error.contains(why), "{path}: {error}");
        }
        assert_eq!(open(&folder, &folder.join("none")).unwrap_err().kind(), ErrorKind::NotFound);
        for path in
            [outside.path().join("secret"), folder.join("../secret"), folder.join("real/../real/file")]
        {
            assert!(open(&folder, &path).is_err(), "{}", path.display());
        }
        symlink(&folder, outside.path().join("named")).unwrap();
        let named = outside.path().join("named");
        assert!(open(&named, &named.join("real/file")).is_ok(), "the user has named it");
        assert!(is_folder(&folder.join("real")) && !is_folder(&folder.join("behind")));
    }

    #[test]
    fn no_folder_is_made_behind_a_link() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("folder");
        fs::create_dir_all(folder.join("real")).unwrap();
        fs::create_dir(outside.path().join("other")).unwrap();
        symlink("../other", folder.join("link")).unwrap();
        fs::write(folder.join("file"), "f").unwrap();
        make_folders(&folder, &folder.join("real/a/b/name")).unwrap();
        assert!(is_folder(&folder.join("real/a/b")) && !folder.join("real/a/b/name").exists());
        make_folders(&folder, &folder.join("name")).unwrap();
        for path in ["link/name", "link/a/name", "file/name", "../other/name"] {
            assert!(make_folders(&folder, &folder.join(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(outside.path().join("other")).unwrap().count(), 0);
    }

    #[test]
    fn a_link_is_replaced_by_an_empty_folder() {
        let outside = tempfile::tempdir().unwrap();
        let (other, folder) = (outside.path().join("other"), outside.path().join("folder"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "k").unwrap();
        symlink(&other, &folder).unwrap();
        for _ in 0..2 {
            make_empty(&folder).unwrap();
            assert!(is_folder(&folder) && fs::read_dir(&folder).unwrap().next().is_none());
            fs::write(folder.join("old"), "o").unwrap();
        }
        assert_eq!(fs::read_to_string(other.join("kept")).unwrap(), "k");
    }
}
