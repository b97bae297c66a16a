//! Servers that encrypt, and servers with the wrong identity.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sluice_testing::conformance::{DONE, first, run};
use std::path::Path;

/// A certificate authority of a test.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { pem, issuer: Issuer::new(params, key) }
}

/// A server with a certificate of an authority for some names.
fn server_of(authority: &Authority, names: &[&str]) -> Server {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(names).unwrap();
    let shown = params.signed_by(&key, &authority.issuer).unwrap();
    let settings =
        ["listen_addresses=127.0.0.1", "ssl=on", "ssl_cert_file=../crt", "ssl_key_file=../key"];
    let files = [("crt", &*shown.pem()), ("key", &*key.serialize_pem())];
    Server::start_with(&settings, &files).unwrap()
}

fn opened(server: &Server, host: &str, words: &str) -> Result<PostgresStore, OpenError> {
    let url = format!("postgres://sluice@{host}:{}/postgres?{words}", server.port());
    PostgresStore::open(&url, Arc::new(SetClock::default()))
}

/// The number of the store's encrypted and of its plain connections.
fn encrypted(server: &Server) -> String {
    server.psql(
        "SELECT count(*) FILTER (WHERE ssl) > 0, count(*) FILTER (WHERE NOT ssl) > 0
         FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'sluice'",
    )
}

#[test]
fn connections_are_encrypted_and_servers_verified_as_asked() {
    let (ours, theirs) = (authority(), authority());
    let server = server_of(&ours, &["localhost"]);
    let dir = tempfile::tempdir().unwrap();
    let root = |name: &str, authority: &Authority| {
        let file = dir.path().join(name);
        std::fs::write(&file, &authority.pem).unwrap();
        format!("&sslrootcert={}", file.display())
    };
    let (right, wrong) = (root("ours", &ours), root("theirs", &theirs));
    let works = |host: &str, words: &str| {
        let store = opened(&server, host, words).unwrap_or_else(|why| panic!("{words}: {why}"));
        wait(store.list(Filter::default())).unwrap();
        encrypted(&server)
    };
    assert_eq!(works("localhost", "sslmode=disable"), "f|t");
    for words in ["", "sslmode=prefer", "sslmode=require"] {
        assert_eq!(works("127.0.0.1", words), "t|f", "{words}: any server, and any name");
    }
    for mode in ["require", "verify-ca"] {
        assert_eq!(works("127.0.0.1", &format!("sslmode={mode}{right}")), "t|f", "any name");
    }
    let full = format!("sslmode=verify-full{right}");
    assert_eq!(works("localhost", &full), "t|f");
    let refused = |host: &str, words: &str| {
        let error = opened(&server, host, words).err().unwrap_or_else(|| panic!("{words}"));
        assert!(matches!(error, OpenError::Failed(_)), "{error}");
        error.to_string()
    };
    for mode in ["require", "verify-ca", "verify-full"] {
        let why = refused("localhost", &format!("sslmode={mode}{wrong}"));
        assert!(why.contains("invalid peer certificate"), "{mode}: {why}");
    }
    let why = refused("127.0.0.1", &full);
    assert!(why.contains("not valid for name"), "{why}");
    // No authority of the system has signed it.
    let why = refused("localhost", "sslmode=verify-full");
    assert!(why.contains("UnknownIssuer"), "{why}");
    let store = opened(&server, "localhost", &full).unwrap();
    assert_eq!(append(&store, first(run(1))), DONE);
}

#[test]
fn a_server_that_cannot_encrypt_is_refused_where_that_is_asked_for() {
    let server = Server::start_listening(&[]).unwrap();
    assert!(opened(&server, "127.0.0.1", "sslmode=prefer").is_ok());
    let dir = tempfile::tempdir().unwrap();
    let file: &Path = &dir.path().join("root");
    std::fs::write(file, authority().pem).unwrap();
    let root = format!("&sslrootcert={}", file.display());
    for words in ["sslmode=require", "sslmode=verify-full", &format!("sslmode=verify-ca{root}")] {
        let error = opened(&server, "127.0.0.1", words).err().unwrap();
        assert!(error.to_string().contains("server does not support TLS"), "{words}: {error}");
    }
}

#[test]
fn a_password_is_asked_for_over_tls_and_bound_to_it() {
    let ours = authority();
    let server = server_of(&ours, &["localhost"]);
    server.psql("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'secret'");
    let hba = "COPY (SELECT 'local all all trust' UNION ALL
        SELECT 'hostssl all all all scram-sha-256') TO PROGRAM 'cat >pg_hba.conf'";
    server.psql(hba);
    server.psql("SELECT pg_reload_conf()");
    let url = |password: &str, words: &str| {
        let port = server.port();
        format!("postgres://ada:{password}@localhost:{port}/postgres?{words}")
    };
    let open = |url: &str| PostgresStore::open(url, Arc::new(SetClock::default()));
    // The server takes a moment to reload its file.
    let refused = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        open(&url("wrong", "sslmode=require")).err()
    });
    let refused = refused.unwrap().to_string();
    assert!(refused.contains("password authentication failed"), "{refused}");
    assert!(!refused.contains("wrong"), "{refused}");
    let bound = url("secret", "sslmode=require&channel_binding=require");
    assert!(open(&bound).is_ok(), "{:?}", open(&bound).err());
    assert!(open(&url("secret", "sslmode=disable")).is_err());
}
