//! Opens files of a folder that somebody else may have made.
//!
//! A link in it could lead to any file of this machine, whose content would then be uploaded, and a pipe would never end. So
//! only ordinary files are opened, and no part of their path below the folder may be a link. The folder itself, which the user
//! has named, may be one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens a file below a folder.
pub fn open(folder: &Path, path: &Path) -> io::Result<File> {
    let below = path.strip_prefix(folder).map_err(|_| refusal("it is not inside its folder"))?;
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

/// Whether it is a folder, and no link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
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
        assert!(open(&folder, &outside.path().join("secret")).is_err());
        symlink(&folder, outside.path().join("named")).unwrap();
        let named = outside.path().join("named");
        assert!(open(&named, &named.join("real/file")).is_ok(), "the user has named it");
        assert!(is_folder(&folder.join("real")) && !is_folder(&folder.join("behind")));
    }
}
