//! How far a server is trusted: what `sslmode` and `sslrootcert` ask for.
//!
//! The words mean what they mean to PostgreSQL's own library. `prefer`, which
//! holds where nothing is said, encrypts where the server can, and `require`
//! always; neither looks at who the server is, unless `require` is given a root
//! certificate. `verify-ca` asks for a chain up to that root, and `verify-full` for
//! the server's name as well. Without a root, `verify-full` takes those of the
//! system. `verify-ca` must name one: anyone can have a certificate of a public
//! authority.
//!
//! INVARIANT: what asks for encryption never goes on without it, and what asks for
//! a verified server speaks with no other.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The root certificates of the system, as PostgreSQL's own library names them.
const SYSTEM: &str = "system";

/// What a URL says of TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// The word of `sslmode`.
    pub(super) mode: Option<String>,
    /// The file of `sslrootcert`.
    pub(super) root: Option<String>,
}

/// Which servers are the right ones.
enum Trust {
    Anyone,
    Chain(RootCertStore),
    ChainAndName(RootCertStore),
}

impl Wish {
    /// The way to make connections so, and whether they must be encrypted.
    pub(super) fn grant(&self) -> Result<(SslMode, MakeRustlsConnect), String> {
        let (mode, trust) = match (self.mode.as_deref().unwrap_or("prefer"), &self.root) {
            ("disable", None) => (SslMode::Disable, Trust::Anyone),
            ("prefer", None) => (SslMode::Prefer, Trust::Anyone),
            ("disable" | "prefer", Some(_)) => {
                let why = "sslrootcert needs sslmode=require, verify-ca or verify-full";
                return Err(why.to_owned());
            }
            ("require", None) => (SslMode::Require, Trust::Anyone),
            ("require" | "verify-ca", Some(root)) if root == SYSTEM => {
                return Err("sslrootcert=system needs sslmode=verify-full".to_owned());
            }
            ("require" | "verify-ca", Some(root)) => {
                (SslMode::Require, Trust::Chain(read_roots(root)?))
            }
            ("verify-ca", None) => return Err("sslmode=verify-ca needs sslrootcert".to_owned()),
            ("verify-full", Some(root)) if root != SYSTEM => {
                (SslMode::Require, Trust::ChainAndName(read_roots(root)?))
            }
            ("verify-full", _) => (SslMode::Require, Trust::ChainAndName(system_roots()?)),
            _ => {
                let words = "disable, prefer, require, verify-ca or verify-full";
                return Err(format!("sslmode must be {words}"));
            }
        };
        Ok((mode, MakeRustlsConnect::new(client(trust)?)))
    }
}

fn client(trust: Trust) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let roots = match trust {
        Trust::ChainAndName(roots) => {
            return Ok(client.with_root_certificates(roots).with_no_client_auth());
        }
        Trust::Chain(roots) => Some(roots),
        Trust::Anyone => None,
    };
    let verifier = Arc::new(Nameless { provider, roots });
    Ok(client.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn read_roots(file: &str) -> Result<RootCertStore, String> {
    let failed = |error: &dyn std::fmt::Display| format!("sslrootcert {file}: {error}");
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
        roots.add(root.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"no certificate in it"));
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems carry roots that nothing of ours can read. One of them is no reason to stop.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("the system has no root certificates: name one by sslrootcert".to_owned());
    }
    Ok(roots)
}

/// Takes a server by any name. Its signatures are looked at all the same: it holds
/// the key of the certificate that it shows.
#[derive(Debug)]
struct Nameless {
    provider: Arc<CryptoProvider>,
    /// None where anyone is taken.
    roots: Option<RootCertStore>,
}

impl ServerCertVerifier for Nameless {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let shown = ParsedCertificate::try_from(end_entity)?;
            let known = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&shown, roots, intermediates, now, known)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
