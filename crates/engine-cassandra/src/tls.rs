//! TLS to the cluster: whom to trust, what name to expect, and who we are.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::options::Tls;

/// Why TLS can't be set up as the address says.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{setting} {} can't be used: {source}; it takes a PEM file that this server may read", .path.display())]
    File { setting: &'static str, path: PathBuf, source: Box<dyn StdError + Send + Sync> },
    #[error("the system has no certificate authorities ({source}); name your own with ca=FILE")]
    NoAuthorities { source: VerifierBuilderError },
    #[error("server-name {name:?} is not a host name; use the name that the certificates have")]
    ServerName { name: String },
    #[error("can't set up TLS: {source}")]
    Setup { source: Error },
}

pub fn configure(tls: &Tls) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(tls)?), provider.clone())
        .build()
        .map_err(|source| match &tls.authority {
            Some(path) => unusable("ca", path, source),
            None => TlsError::NoAuthorities { source },
        })?;
    let verifier: Arc<dyn ServerCertVerifier> = match &tls.server_name {
        None => verifier,
        Some(name) => {
            let name = ServerName::try_from(name.clone())
                .map_err(|_| TlsError::ServerName { name: name.clone() })?;
            Arc::new(OneName { name, verifier })
        }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Setup { source })?
        // It checks everything that the usual one does. Only the name may differ from the dialled address.
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some((certificate, key)) = &tls.identity else { return Ok(Arc::new(config.with_no_client_auth())) };
    let chain = certificates("cert", certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key, error))?;
    let config =
        config.with_client_auth_cert(chain, private).map_err(|error| unusable("cert", certificate, error))?;
    Ok(Arc::new(config))
}

fn roots(tls: &Tls) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    match &tls.authority {
        Some(path) => {
            for certificate in certificates("ca", path)? {
                roots.add(certificate).map_err(|error| unusable("ca", path, error))?;
            }
        }
        None => {
            // Systems often have certificates that can't be parsed. It is an error only if none is left.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(|error| unusable(setting, path, error))?;
    if found.is_empty() { Err(unusable(setting, path, "it holds no certificate in PEM")) } else { Ok(found) }
}

fn unusable(setting: &'static str, path: &Path, why: impl Into<Box<dyn StdError + Send + Sync>>) -> TlsError {
    TlsError::File { setting, path: path.to_owned(), source: why.into() }
}

/// Expects one name in all certificates. The driver dials addresses that it learns from the nodes and knows no names,
/// whereas certificates often have only names.
#[derive(Debug)]
struct OneName {
    name: ServerName<'static>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for OneName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
