use super::*;

const FULL: &str = "
gateway: far
server: http://127.0.0.1:7400
token: env:TOKEN
key: file:/run/key
spool: spool
servers: ['https://sluice.internal']
allow: [10.0.0.0/8]
running_max: 5
adapters:
  mock: {script: mock.yaml}
  shell: {workspace: /tmp/work}
  web: {provider: http, base_url: 'http://127.0.0.1:9/x', key: env:WEB}
";

fn read(text: &str) -> Result<BridgeFile, String> {
    let value = file::read(text).map_err(|problems| problems[0].message.clone())?;
    BridgeFile::new(value, Path::new("/etc/sluice"))
}

#[test]
fn a_file_says_what_a_bridge_does_and_its_paths_begin_where_it_lies() {
    let plan = read(FULL).unwrap();
    assert_eq!(plan.spool, Path::new("/etc/sluice/spool"));
    let script = plan.adapters["mock"].script.as_deref();
    assert_eq!(script, Some(Path::new("/etc/sluice/mock.yaml")));
    assert_eq!(plan.adapters["shell"].workspace.as_deref(), Some(Path::new("/tmp/work")));
    assert_eq!(plan.adapters["web"].provider.as_deref(), Some("http"));
    assert_eq!((plan.running_max, plan.servers.len()), (Some(5), 1));
}

#[test]
fn a_file_that_makes_no_sense_is_refused() {
    let without = |field: &str| {
        let kept = FULL.lines().filter(|line| !line.starts_with(field));
        kept.collect::<Vec<_>>().join("\n")
    };
    for field in ["gateway:", "server:", "token:", "spool:"] {
        assert!(read(&without(field)).is_err(), "{field}");
    }
    for (old, new) in [
        ("token: env:TOKEN", "token: the-secret-itself"),
        ("server: http", "server: ftp"),
        ("running_max: 5", "running_max: 0"),
        ("gateway: far", "gateway: ''"),
        ("gateway: far", "gateway: far\nodd: 1"),
        ("provider: http,", "provider: http, odd: 1,"),
        ("gateway: far", "gateway: [far"),
    ] {
        let why = read(&FULL.replace(old, new)).expect_err(new);
        assert!(!why.contains("the-secret-itself"), "{why}");
    }
    let no_adapters = "gateway: a\nserver: http://x\ntoken: env:A\nspool: s\nadapters: {}\n";
    assert!(read(no_adapters).is_err());
}
