//! HTTPS: certificates from PEM files, reloaded when the files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
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

/// Why HTTPS can't be served with these files.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{} can't be used for TLS: {source}; it takes PEM", .path.display())]
    Unreadable { path: PathBuf, source: pem::Error },
    #[error("{} can't be used for TLS: it holds no certificate; it takes certificates in PEM", .path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} can't be used for TLS: {source}; it takes an RSA, ECDSA or Ed25519 key in PEM", .path.display())]
    Key { path: PathBuf, source: rustls::Error },
    #[error(
        "{} can't be used for TLS: it is not the key of {}; name the key and the certificate that belong together",
        .key.display(), .certificate.display()
    )]
    OtherKey { key: PathBuf, certificate: PathBuf },
    #[error("can't set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}

impl Certificate {
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new((read(&files)?, changed(&files)));
        Ok(Arc::new(Self { files, current }))
    }

    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again if they have changed. On an error the old certificate stays.
    pub fn refresh(&self) -> Result<bool, TlsError> {
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

fn read(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, TlsError> {
    let CertificateFiles { certificate, key: key_file } = files;
    let unreadable = |path: &Path, source| TlsError::Unreadable { path: path.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unreadable(certificate, error))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: certificate.clone() });
    }
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| unreadable(key_file, error))?;
    let key = ring::sign::any_supported_type(&key)
        .map_err(|source| TlsError::Key { path: key_file.clone(), source })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok(Arc::new(certified))
        }
        Err(_) => Err(TlsError::OtherKey { key: key_file.clone(), certificate: certificate.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A self-signed certificate and its key.
    fn made_in(directory: &Path) -> CertificateFiles {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files = CertificateFiles {
            certificate: directory.join("certificate.pem"),
            key: directory.join("key.pem"),
        };
        fs::write(&files.certificate, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        files
    }

    #[test]
    fn files_that_do_not_serve_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let files = made_in(directory.path());
        let other = tempfile::tempdir().unwrap();
        let other = made_in(other.path()).certificate;
        let check = |files: CertificateFiles, expected: &str| {
            let error = Certificate::load(files).unwrap_err().to_string();
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
            CertificateFiles { certificate: other, ..files },
            "key.pem can't be used for TLS: it is not the key of",
        );
    }

    #[test]
    fn a_renewed_certificate_is_taken_up_and_a_broken_one_is_not() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = made_in(first.path());
        let renewed = made_in(second.path());
        let certificate = Certificate::load(files.clone()).unwrap();
        assert!(!certificate.refresh().unwrap(), "nothing has changed");
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
        assert!(certificate.refresh().unwrap());
        assert_ne!(shown(), before);
    }
}
