//! Makes the table of the console's files: everything in `dist/`, as it is. Needs nothing but the compiler; `web/` says how
//! the files are made.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// By the end of a file's name.
const TYPES: [(&str, &str); 9] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
];

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let dist = Path::new(&root).join("dist");
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist, "", &mut files)?;
    }
    files.sort();
    let mut table = String::from("pub static ASSETS: &[Asset] = &[\n");
    for name in &files {
        // Not the directory, whose time says nothing. A file that is added changes index.html, too.
        println!("cargo:rerun-if-changed=dist/{name}");
        let bytes = fs::read(dist.join(name))?;
        let (path, encoding) = match name.rsplit_once('.') {
            Some((path, "br")) => (path, "Some(\"br\")"),
            Some((path, "gz")) => (path, "Some(\"gzip\")"),
            _ => (name.as_str(), "None"),
        };
        let end = path.rsplit_once('.').map_or("", |(_, end)| end);
        let kind = TYPES.iter().find(|(known, _)| *known == end).map(|(_, kind)| kind);
        let kind =
            kind.ok_or_else(|| io::Error::other(format!("{name}: build.rs does not know its type")))?;
        // Where the sources are is said when the crate is compiled, because clones that share a target directory share what
        // this program wrote. Writing to a String can't fail.
        let _ = writeln!(
            table,
            "    Asset {{ path: {path:?}, content_type: {kind:?}, encoding: {encoding}, etag: {:?}, bytes: include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})) }},",
            format!("\"{:032x}\"", hash(&bytes)),
            format!("/dist/{name}")
        );
    }
    table.push_str("];\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("assets.rs"), table)
}

fn collect(directory: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| io::Error::other(format!("{name:?}")))?;
        let name = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

/// FNV-1a, 128 bits: an ETag only has to differ when the file does.
fn hash(bytes: &[u8]) -> u128 {
    let start: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}
