//! Whom to trust over HTTPS: the system's authorities, and one more if it is named.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Errors name the file and what is wrong with it.
pub fn connector(authority: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    // Some of a system's certificates are always odd; what is left over decides.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = authority {
        let bad = |why: &dyn std::fmt::Display| format!("--ca {} can't be used: {why}", path.display());
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))?;
        let mut found = false;
        for certificate in certificates {
            roots.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
            found = true;
        }
        if !found {
            return Err(bad(&"it holds no certificate in PEM"));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("can't set up TLS: {error}"))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
