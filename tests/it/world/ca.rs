//! The certificate authority of the fake world. Production code meets real names and real TLS; only `SSL_CERT_FILE`
//! tells it whom to trust.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Every name that the world can speak for: those that usher must ask, and those that it must never ask.
const NAMES: &[&str] = &[
    "slack.com",
    "*.slack.com",
    "slack-files.com",
    "api.github.com",
    "github.com",
    "*.githubusercontent.com",
    "github-production-user-asset-6210df.s3.amazonaws.com",
    "evil.example",
    "docs.google.com",
];

/// A certificate authority with one leaf for all hosts.
pub struct Ca {
    /// The authority's certificate, for `SSL_CERT_FILE`.
    pub pem: String,
    /// Accepts TLS as any of the hosts.
    pub acceptor: TlsAcceptor,
}

impl Ca {
    pub fn new() -> Self {
        let (pem, issuer) = authority();
        let key = KeyPair::generate().expect("a key pair");
        let names: Vec<String> = NAMES.iter().map(ToString::to_string).collect();
        let mut leaf = CertificateParams::new(names).expect("the names are valid");
        leaf.use_authority_key_identifier_extension = true;
        let leaf = leaf.signed_by(&key, &issuer).expect("the authority signs the leaf");
        let chain = vec![CertificateDer::from(leaf)];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key is PKCS #8");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key belongs to the leaf");
        Self { pem, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "usher's fake world");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("a key pair");
    let certificate = params.self_signed(&key).expect("the authority signs itself");
    (certificate.pem(), Issuer::new(params, key))
}
