//! The web console's files, as they are served. `dist/` holds them; `web/` holds what they are made of.

/// A file of the console. One file may be there in several encodings.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Without a slash at its start: `index.html`, `app-1f2e3d.js`.
    pub path: &'static str,
    pub content_type: &'static str,
    /// The `Content-Encoding` in which `bytes` are stored, from the name: `.br` is Brotli, `.gz` is gzip.
    pub encoding: Option<&'static str>,
    /// With its quotes.
    pub etag: &'static str,
    pub bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));
