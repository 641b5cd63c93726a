//! The certificate authorities that are trusted over HTTPS: the system's, and one more if it is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why HTTPS can't be used.
#[derive(Debug, Error)]
pub enum ConnectorError {
    #[error("--ca {} can't be used: {source}; it takes certificates in PEM", .path.display())]
    Unreadable { path: PathBuf, source: pem::Error },
    #[error("--ca {} can't be used: {source}; it takes the certificate of an authority", .path.display())]
    Certificate { path: PathBuf, source: rustls::Error },
    #[error("--ca {} can't be used: it holds no certificate in PEM", .path.display())]
    NoCertificate { path: PathBuf },
    #[error("can't set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}

pub fn connector(authority: Option<&Path>) -> Result<TlsConnector, ConnectorError> {
    let mut roots = RootCertStore::empty();
    // Most systems have some certificates that can't be read; those are left out.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = authority {
        let path = || path.to_owned();
        let unreadable = |source| ConnectorError::Unreadable { path: path(), source };
        let certificates = CertificateDer::pem_file_iter(path()).map_err(unreadable)?;
        let mut found = false;
        for certificate in certificates {
            let certificate = certificate.map_err(unreadable)?;
            roots.add(certificate).map_err(|source| ConnectorError::Certificate { path: path(), source })?;
            found = true;
        }
        if !found {
            return Err(ConnectorError::NoCertificate { path: path() });
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ConnectorError::Setup)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
