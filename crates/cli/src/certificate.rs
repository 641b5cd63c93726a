//! Creates a certificate for HTTPS in development.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use front::tls::CertificateFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

#[derive(Debug, thiserror::Error)]
#[error(
    "can't create a development certificate in {}: {source}; name another directory with --dev-cert",
    .directory.display()
)]
pub struct CertificateError {
    directory: PathBuf,
    source: io::Error,
}

/// Creates a certificate authority, and a certificate for local names; once, then they are kept.
///
/// Also returns the authority's file: clients must trust it.
pub fn development_certificate(directory: &Path) -> Result<(CertificateFiles, PathBuf), CertificateError> {
    let file = |name: &str| directory.join(name);
    let files = CertificateFiles { certificate: file("certificate.pem"), key: file("key.pem") };
    let authority = file("authority.pem");
    if files.certificate.exists() && files.key.exists() && authority.exists() {
        return Ok((files, authority));
    }
    let made = make(directory, &files, &authority);
    made.map_err(|source| CertificateError { directory: directory.to_owned(), source })?;
    Ok((files, authority))
}

fn make(directory: &Path, files: &CertificateFiles, authority: &Path) -> io::Result<()> {
    let other = |error: rcgen::Error| io::Error::other(error);
    store::private_directory::create(directory)?;

    let mut params = CertificateParams::new(Vec::new()).map_err(other)?;
    params.distinguished_name.push(DnType::CommonName, "Partita development authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate().map_err(other)?;
    let authority_certificate = params.self_signed(&authority_key).map_err(other)?;
    let issuer = Issuer::new(params, authority_key);

    let names =
        ["localhost", "127.0.0.1", "::1", "*.table.localhost", "*.queue.localhost", "host.docker.internal"];
    let mut params = CertificateParams::new(names.map(str::to_owned)).map_err(other)?;
    params.distinguished_name.push(DnType::CommonName, "Partita development server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(other)?;
    let certificate = params.signed_by(&key, &issuer).map_err(other)?;

    // The authority's key is not saved, so nothing else can be signed with it.
    write_private(&files.key, &key.serialize_pem())?;
    fs::write(authority, authority_certificate.pem())?;
    fs::write(&files.certificate, certificate.pem())
}

/// Only the owner can read the file, from its creation on.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use front::tls::Certificate;

    #[test]
    fn a_development_certificate_is_made_once_and_kept_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (files, authority) = development_certificate(directory.path()).unwrap();
        let first = fs::read(&authority).unwrap();
        assert!(Certificate::load(files.clone()).unwrap().acceptor().is_ok());
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        development_certificate(directory.path()).unwrap();
        assert_eq!(fs::read(&authority).unwrap(), first);
    }
}
