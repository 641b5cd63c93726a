//! HTTPS: certificates from PEM files, read anew when they change, or made here for development.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The certificate shown to the next client, with the files it came from.
#[derive(Debug)]
pub struct Certificate {
    files: CertificateFiles,
    current: RwLock<(Arc<CertifiedKey>, Option<SystemTime>)>,
}

impl Certificate {
    /// Errors are one sentence that names the file.
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, String> {
        let current = RwLock::new((read(&files)?, changed(&files)));
        Ok(Arc::new(Self { files, current }))
    }

    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, String> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("can't set up TLS: {error}"))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files anew if they were written since; what can't be read changes nothing.
    pub fn refresh(&self) -> Result<bool, String> {
        let written = changed(&self.files);
        if written == self.current.read().unwrap_or_else(PoisonError::into_inner).1 {
            return Ok(false);
        }
        let key = read(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (key, written);
        Ok(true)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).0.clone())
    }
}

fn changed(files: &CertificateFiles) -> Option<SystemTime> {
    let written = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    written(&files.certificate).max(written(&files.key))
}

fn read(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, String> {
    let bad =
        |path: &Path, why: &dyn std::fmt::Display| format!("{} can't be used for TLS: {why}", path.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&files.certificate)
        .map_err(|error| bad(&files.certificate, &error))?
        .collect();
    let chain = chain.map_err(|error| bad(&files.certificate, &error))?;
    if chain.is_empty() {
        return Err(bad(&files.certificate, &"it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, &error))?;
    let key = ring::sign::any_supported_type(&key).map_err(|error| bad(&files.key, &error))?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok(Arc::new(certified))
        }
        Err(_) => Err(bad(&files.key, &format!("it is not the key of {}", files.certificate.display()))),
    }
}

/// An authority of this machine's own, and a certificate by it for local names. Made once and kept.
///
/// Gives the authority's file too: a client that trusts it trusts this server.
pub fn development_certificate(directory: &Path) -> Result<(CertificateFiles, PathBuf), String> {
    let file = |name: &str| directory.join(name);
    let files = CertificateFiles { certificate: file("certificate.pem"), key: file("key.pem") };
    let authority = file("authority.pem");
    if files.certificate.exists() && files.key.exists() && authority.exists() {
        return Ok((files, authority));
    }
    let made = make(directory, &files, &authority);
    made.map_err(|error| {
        format!("can't make a development certificate in {}: {error}", directory.display())
    })?;
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

    let names = ["localhost", "127.0.0.1", "::1", "*.table.localhost", "host.docker.internal"];
    let mut params = CertificateParams::new(names.map(str::to_owned)).map_err(other)?;
    params.distinguished_name.push(DnType::CommonName, "Partita development server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(other)?;
    let certificate = params.signed_by(&key, &issuer).map_err(other)?;

    // The authority's key is not kept: nothing else will ever be signed with it.
    write_private(&files.key, &key.serialize_pem())?;
    fs::write(authority, authority_certificate.pem())?;
    fs::write(&files.certificate, certificate.pem())
}

/// For the owner's eyes alone, from the first byte on.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn files_that_do_not_serve_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (files, authority) = development_certificate(directory.path()).unwrap();
        let check = |files: CertificateFiles, expected: &str| {
            let error = Certificate::load(files).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let missing = directory.path().join("missing.pem");
        check(
            CertificateFiles { certificate: missing.clone(), ..files.clone() },
            "missing.pem can't be used for TLS",
        );
        check(CertificateFiles { key: missing, ..files.clone() }, "missing.pem can't be used for TLS");
        check(
            CertificateFiles { certificate: files.key.clone(), ..files.clone() },
            "it holds no certificate",
        );
        check(
            CertificateFiles { certificate: authority, ..files },
            "key.pem can't be used for TLS: it is not the key of",
        );
    }

    #[test]
    fn a_renewed_certificate_is_taken_up_and_a_broken_one_is_not() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (files, _) = development_certificate(first.path()).unwrap();
        let (renewed, _) = development_certificate(second.path()).unwrap();
        let certificate = Certificate::load(files.clone()).unwrap();
        assert_eq!(certificate.refresh(), Ok(false));
        let shown = || certificate.current.read().unwrap().0.cert[0].clone();
        let before = shown();
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        let touch = |path: &Path, time| {
            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        fs::copy(&renewed.certificate, &files.certificate).unwrap();
        touch(&files.certificate, later);
        assert!(certificate.refresh().is_err(), "the key is still the old one");
        assert_eq!(shown(), before);
        fs::copy(&renewed.key, &files.key).unwrap();
        touch(&files.key, later);
        assert_eq!(certificate.refresh(), Ok(true));
        assert_ne!(shown(), before);
    }
}
