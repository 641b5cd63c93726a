//! TLS: which certificate authorities to trust.

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// Plain and TLS connections. Trusts `authorities`, each in PEM, in addition to the system's.
pub fn connector(authorities: &[Vec<u8>]) -> Result<HttpsConnector<HttpConnector>> {
    let mut roots = RootCertStore::empty();
    // Errors are ignored: plain HTTP needs no authorities, and with TLS the handshake reports what is missing.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for pem in authorities {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate
                .map_err(|error| Error::invalid(format!("an authority to trust is no PEM: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| Error::invalid(format!("an authority can't be trusted: {error}")))?;
        }
        if roots.len() == before {
            return Err(Error::invalid("an authority to trust holds no certificate; it takes a file in PEM"));
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::invalid(format!("TLS can't be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(std::time::Duration::from_secs(10)));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http))
}
