use super::*;
use crate::postgres::tls::TlsSettings;

fn settings(mode: Option<&str>, root: Option<&str>) -> TlsSettings {
    TlsSettings { mode: mode.map(str::to_owned), root: root.map(str::to_owned) }
}

#[test]
fn our_words_are_taken_out_of_both_forms_of_a_url() {
    let (mode, root) = (Some("verify-full"), Some("/etc/my ca.pem"));
    let cases = [
        ("postgres://h/d?sslmode=verify-full", "postgres://h/d?", settings(mode, None)),
        (
            "postgres://u:p?w@h/d?a=1&sslmode=verify-full&sslrootcert=/etc/my%20ca.pem&b=2",
            "postgres://u:p?w@h/d?a=1&b=2",
            settings(mode, root),
        ),
        ("postgresql://h/sslmode=x", "postgresql://h/sslmode=x", settings(None, None)),
        ("host=h sslmode=verify-full", "host=h ", settings(mode, None)),
        (
            r"sslrootcert = '/etc/my ca.pem' password='it\'s sslmode=off' sslmode=verify-full port=1",
            r"password='it\'s sslmode=off' port=1",
            settings(mode, root),
        ),
        (r"sslrootcert=/etc/my\ ca.pem host=h", "host=h", settings(None, root)),
        (
            "postgres://h/d?sslmode=disable&sslmode=verify-full",
            "postgres://h/d?",
            settings(mode, None),
        ),
        ("sslmode=disable  sslmode='verify-full'", "", settings(mode, None)),
    ];
    for (url, rest, setting) in cases {
        assert_eq!(url_params::split_tls(url), (rest.to_owned(), setting), "{url}");
    }
}

#[test]
fn a_url_of_several_hosts_is_one_of_each() {
    let address = DatabaseAddress::read(
        "postgres://u:secret@a:1,b:2/d?options=-c%20x%3D1&target_session_attrs=read-write\
         &sslmode=require&connect_timeout=7",
        None,
    );
    let address = address.unwrap();
    let hosts: Vec<_> =
        address.hosts.iter().map(|one| (one.get_hosts(), one.get_ports())).collect();
    let named = |name: &str| [Host::Tcp(name.to_owned())];
    assert_eq!(hosts, [(&named("a")[..], &[1][..]), (&named("b")[..], &[2][..])]);
    let whole: Config = "postgres://u:secret@b:2/d?options=-c%20x%3D1&sslmode=require\
        &target_session_attrs=read-write&connect_timeout=7&application_name=sluice"
        .parse()
        .unwrap();
    let mut whole = whole;
    whole.tcp_user_timeout(Duration::from_millis(RESPONSE_MS_MAX));
    whole.keepalives_idle(Duration::from_secs(KEEPALIVE_S));
    whole.keepalives_interval(Duration::from_secs(KEEPALIVE_S));
    assert_eq!(address.hosts[1], whole, "nothing else is lost");
}

#[test]
fn a_url_that_cannot_be_meant_is_refused_and_says_why() {
    let refused = |url: &str| DatabaseAddress::read(url, None).err().unwrap();
    assert_eq!(refused("postgres:///d"), "it has no host");
    assert_eq!(refused("postgres://a,b/d?port=1,2,3"), "host and port differ in number");
    assert_eq!(
        refused("host=h sslmode=verify_full"),
        "sslmode must be disable, prefer, require, verify-ca or verify-full"
    );
    assert_eq!(refused("host=h sslmode=verify-ca"), "sslmode=verify-ca needs sslrootcert");
    assert_eq!(
        refused("host=h sslrootcert=/a"),
        "sslrootcert needs sslmode=require, verify-ca or verify-full"
    );
    assert_eq!(
        refused("host=h sslmode=require sslrootcert=system"),
        "sslrootcert=system needs sslmode=verify-full"
    );
    let missing = refused("host=h sslmode=verify-full sslrootcert=/nowhere.pem");
    assert!(missing.starts_with("sslrootcert /nowhere.pem: "), "{missing}");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = refused(&format!("host=h sslmode=require sslrootcert={}", empty.path().display()));
    assert!(empty.ends_with(": contains no certificate"), "{empty}");
}
