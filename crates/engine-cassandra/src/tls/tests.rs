use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData};
use rustls_pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;

use super::*;

/// An authority, and a node's certificate for one name and one address.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { directory, issuer: Issuer::new(params, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn sign(&self, names: &[&str]) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.file("own.pem"), certificate.pem()).unwrap();
        std::fs::write(self.file("own.key"), key.serialize_pem()).unwrap();
        (certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into())
    }

    fn node(&self, asks_for_certificate: bool) -> Arc<ServerConfig> {
        let (certificate, key) = self.sign(&["nodes.example", "127.0.0.1"]);
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let roots = roots(&Tls { authority: Some(self.file("ca.pem")), ..Tls::default() }).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = if asks_for_certificate {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
    }
}

/// A handshake with a node at an address, as the driver does it.
fn shake_hands(tls: &Tls, node: Arc<ServerConfig>, address: &str) -> Result<(), String> {
    let name = ServerName::try_from(address.to_owned()).unwrap();
    let mut client = ClientConnection::new(configure(tls).map_err(|error| error.to_string())?, name).unwrap();
    let mut server = ServerConnection::new(node).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        deliver(&mut client, &mut server)?;
        deliver(&mut server, &mut client)?;
    }
    Ok(())
}

fn deliver<A: SideData, B: SideData>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
) -> Result<(), String> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut bytes = bytes.as_slice();
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        to.process_new_packets().map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[test]
fn a_node_is_checked_by_its_authority_and_its_address() {
    let (ours, other) = (Authority::new(), Authority::new());
    let trusting = |authority: &Authority, server_name: Option<&str>| Tls {
        authority: Some(authority.file("ca.pem")),
        identity: None,
        server_name: server_name.map(str::to_owned),
    };
    for (tls, address, expected) in [
        (trusting(&ours, None), "127.0.0.1", Ok(())),
        (trusting(&ours, None), "127.0.0.2", Err("not valid for")),
        (trusting(&ours, Some("nodes.example")), "127.0.0.2", Ok(())),
        (trusting(&ours, Some("other.example")), "127.0.0.1", Err("not valid for")),
        (trusting(&other, None), "127.0.0.1", Err("invalid peer certificate")),
        (trusting(&other, Some("nodes.example")), "127.0.0.1", Err("invalid peer certificate")),
        // The system does not trust our authority.
        (Tls::default(), "127.0.0.1", Err("")),
    ] {
        let outcome = shake_hands(&tls, ours.node(false), address);
        match (&outcome, expected) {
            (Ok(()), Ok(())) => {}
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{tls:?} {address}: {why}"),
            _ => panic!("{tls:?} {address}: {outcome:?}"),
        }
    }
}

#[test]
fn a_node_that_asks_for_a_certificate_gets_one() {
    let authority = Authority::new();
    let node = authority.node(true);
    authority.sign(&["partita"]);
    let mut tls = Tls { authority: Some(authority.file("ca.pem")), ..Tls::default() };
    assert!(shake_hands(&tls, node.clone(), "127.0.0.1").is_err());
    tls.identity = Some((authority.file("own.pem"), authority.file("own.key")));
    assert_eq!(shake_hands(&tls, node, "127.0.0.1"), Ok(()));
}

#[test]
fn files_that_can_not_be_used_are_named() {
    let authority = Authority::new();
    authority.sign(&["partita"]);
    let (ca, own, key, none) = (
        authority.file("ca.pem"),
        authority.file("own.pem"),
        authority.file("own.key"),
        authority.file("none"),
    );
    let with = |ca: &PathBuf, identity: Option<(&PathBuf, &PathBuf)>| Tls {
        authority: Some(ca.clone()),
        identity: identity.map(|(certificate, key)| (certificate.clone(), key.clone())),
        server_name: None,
    };
    for (tls, expected) in [
        (with(&none, None), "ca /"),
        (with(&key, None), "it holds no certificate in PEM"),
        (with(&ca, Some((&none, &key))), "cert /"),
        (with(&ca, Some((&own, &none))), "key /"),
        (with(&ca, Some((&ca, &key))), "cert /"),
        (Tls { server_name: Some("a b".into()), ..with(&ca, None) }, "server-name \"a b\""),
    ] {
        let error = configure(&tls).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.source().is_some(), matches!(error, TlsError::File { .. }), "{error:?}");
    }
}
