//! TLS settings: the meaning of `sslmode` and `sslrootcert`.
//!
//! The values mean the same as in libpq. `prefer`, the default, encrypts if the server
//! supports it, and `require` always. Neither verifies the server, unless `require`
//! comes with a root certificate. `verify-ca` requires a chain up to that root, and
//! `verify-full` also the server's name. Without a root, `verify-full` uses the
//! system's. `verify-ca` must name one, because anyone can get a certificate of a
//! public authority.
//!
//! INVARIANT: a connection that requires encryption is never made without it, and one
//! that requires a verified server is made to no other.

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

/// The root certificates of the system, as libpq names them.
const SYSTEM: &str = "system";

/// The TLS parameters of a URL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: Option<String>,
    pub(super) root: Option<String>,
}

/// How a server is verified.
enum Trust {
    Unverified,
    Chain(RootCertStore),
    ChainAndName(RootCertStore),
}

impl TlsSettings {
    /// The SSL mode and the connector for these settings.
    pub(super) fn connector(&self) -> Result<(SslMode, MakeRustlsConnect), String> {
        let (mode, trust) = match (self.mode.as_deref().unwrap_or("prefer"), &self.root) {
            ("disable", None) => (SslMode::Disable, Trust::Unverified),
            ("prefer", None) => (SslMode::Prefer, Trust::Unverified),
            ("disable" | "prefer", Some(_)) => {
                let why = "sslrootcert needs sslmode=require, verify-ca or verify-full";
                return Err(why.to_owned());
            }
            ("require", None) => (SslMode::Require, Trust::Unverified),
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
        Trust::Unverified => None,
    };
    let verifier = Arc::new(AnyNameVerifier { provider, roots });
    Ok(client.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn read_roots(file: &str) -> Result<RootCertStore, String> {
    let failed = |error: &dyn std::fmt::Display| format!("sslrootcert {file}: {error}");
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
        roots.add(root.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"contains no certificate"));
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some systems have roots that this library cannot parse; they are skipped.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("the system has no root certificates: set sslrootcert".to_owned());
    }
    Ok(roots)
}

/// Accepts a server with any name. Verifies its signatures, so the server must hold the
/// key of its certificate.
#[derive(Debug)]
struct AnyNameVerifier {
    provider: Arc<CryptoProvider>,
    /// `None` accepts any certificate.
    roots: Option<RootCertStore>,
}

impl ServerCertVerifier for AnyNameVerifier {
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
