use super::setting::{Name, SETTINGS, Setting};
use super::tool_server::ToolServer;
use super::value::{Secret, Value};
use super::{Config, Source, Sources, file};
use sluice_bridge::pinned::PinFile;
use sluice_bridge::secret::keyring::Keyring;
use sluice_govern::catalog::Catalog;
use sluice_govern::facts::{ArgumentRole, SendsTo};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn given(pairs: &[(&str, &str)]) -> super::FlagValues {
    let one = |(name, value): &(&str, &str)| ((*name).to_owned(), vec![OsString::from(value)]);
    pairs.iter().map(one).collect()
}

fn in_dir(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sluice.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn a_flag_is_stronger_than_the_environment_and_that_than_the_file() {
    let (_dir, path) =
        in_dir("agent = \"of-file\"\nlisten = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"\n");
    let sources = Sources {
        file: Some(path.clone()),
        variables: given(&[("SLUICE_AGENT", "of-env"), ("SLUICE_LISTEN", "127.0.0.1:2")]),
        flags: given(&[("agent", "of-flag")]),
    };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.text(Name::Agent), Some("of-flag"));
    assert_eq!(config.text(Name::Listen), Some("127.0.0.1:2"));
    assert_eq!(config.text(Name::LogLevel), Some("warn"));
    assert_eq!(*config.source(Name::Agent), Source::Flag);
    assert_eq!(*config.source(Name::Listen), Source::Environment);
    assert_eq!(*config.source(Name::LogLevel), Source::File(path));
    assert_eq!(*config.source(Name::LogFormat), Source::Default);
}

#[test]
fn paths_in_a_file_are_meant_from_where_it_stands() {
    let text = "data = \"runs\"\npolicies = [\"a.cedar\", \"/b\"]\nmoderation = \"words.txt\"\n";
    let (dir, path) = in_dir(text);
    let sources = Sources { file: Some(path), ..Sources::default() };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.data(), dir.path().join("runs"));
    assert_eq!(config.paths(Name::Policies), [dir.path().join("a.cedar"), PathBuf::from("/b")]);
    assert_eq!(config.text(Name::Moderation), dir.path().join("words.txt").to_str());
}

#[test]
fn a_file_in_the_data_directory_cannot_move_it() {
    let (dir, _) = in_dir("data = \"elsewhere\"\nagent = \"shell\"\n");
    let flags = given(&[("data", dir.path().to_str().unwrap())]);
    let config = Config::load(&Sources { flags, ..Sources::default() }).unwrap();
    assert_eq!(config.data(), dir.path());
    assert_eq!(config.text(Name::Agent), Some("shell"));
}

#[test]
fn everything_wrong_with_a_file_is_told_with_its_line() {
    let text = "agnet = \"a\"\n\nurl = \"ftp://x\"\n[limits]\nrate_burst = 0\nbody_byte = 1\n\
                [outbound]\nallow = [1]\n[colour]\nx = 1\n";
    let notes = file::read(text, Path::new("")).unwrap_err();
    let all = notes.join("\n");
    for line in [
        "line 1: there is no setting `agnet`; did you mean `agent`?",
        "line 3: `url`: this is not an address such as",
        "line 5: `limits.rate_burst`: this is not a number from 1 to",
        "line 6: there is no setting `limits.body_byte`; did you mean `limits.body_bytes`?",
        "line 8: `outbound.allow`: this is not a list of texts",
        "line 9: there is no setting `colour`",
    ] {
        assert!(all.contains(line), "{line}\n{all}");
    }
    assert_eq!(notes.len(), 6);
    let broken = file::read("a = \n", Path::new("")).unwrap_err();
    assert!(broken[0].starts_with("line 1: "), "{broken:?}");
}

#[test]
fn durations_are_written_as_in_documents() {
    let (_dir, path) = in_dir("queue_timeout = \"90s\"\n[approvals]\nexpires_in = \"2d\"\n");
    let variables = given(&[("SLUICE_APPROVALS_REMIND_NORMAL", "600")]);
    let sources = Sources { file: Some(path), variables, ..Sources::default() };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.duration_ms(Name::ApprovalsExpiresIn), 2 * 86_400_000);
    assert_eq!(config.duration_ms(Name::ApprovalsRemindNormal), 600_000);
    assert_eq!(config.duration_ms(Name::ApprovalsRemindCritical), 72 * 3_600_000);
    assert_eq!(config.duration_ms(Name::QueueTimeout), 90_000);
    assert_eq!(config.shown(Name::ApprovalsRemindElevated), "1d");
    for refused in ["\"soon\"", "\"0s\"", "\"10ms\"", "\"400d\"", "5", "true"] {
        let text = format!("[approvals]\nexpires_in = {refused}\n");
        let notes = file::read(&text, Path::new("")).unwrap_err();
        let told = "line 2: `approvals.expires_in`: this is not a duration from `1s` to `366d`";
        assert_eq!(notes, [told], "{refused}");
    }
}

#[test]
fn values_that_make_no_sense_are_refused_wherever_they_stand() {
    for (name, value) in [
        ("SLUICE_URL", "http://"),
        ("SLUICE_URL", "http://me:secret@host/"),
        ("SLUICE_URL", "http://a b"),
        ("SLUICE_LISTEN", "localhost"),
        ("SLUICE_LISTEN", ":80"),
        ("SLUICE_LISTEN", "a:99999"),
        ("SLUICE_ALLOW_REMOTE", "yes"),
        ("SLUICE_LOG_LEVEL", "loud"),
        ("SLUICE_LIMITS_BODY_BYTES", "1"),
        ("SLUICE_LIMITS_BODY_BYTES", "-1"),
        ("SLUICE_LIMITS_BODY_BYTES", "1e6"),
    ] {
        let sources = Sources { variables: given(&[(name, value)]), ..Sources::default() };
        let refused = Config::load(&sources).unwrap_err();
        assert_eq!(refused.code, "config_invalid", "{name}={value}");
        assert!(refused.message.contains(name), "{}", refused.message);
    }
    let two = given(&[("data", "a"), ("url", "http://b")]);
    let refused = Config::load(&Sources { flags: two, ..Sources::default() }).unwrap_err();
    assert_eq!(refused.code, "config_invalid");
}

#[test]
fn a_secret_is_never_shown() {
    let literal = Secret::Literal("slk_1234567890".to_owned());
    assert!(
        !format!("{literal} {literal:?} {}", Value::Secret(literal.clone()).to_json())
            .contains("slk_")
    );
    assert_eq!(literal.resolve().unwrap(), "slk_1234567890");
    let (dir, path) = in_dir("slk_from_file\n");
    assert_eq!(Secret::File(path).resolve().unwrap(), "slk_from_file");
    assert!(Secret::File(dir.path().to_owned()).resolve().is_err());
    assert!(Secret::Literal("two words".to_owned()).resolve().is_err());
    assert!(Secret::Variable("SLUICE_NO_SUCH".to_owned()).resolve().is_err());
}

#[test]
fn a_variable_that_is_no_setting_is_noticed() {
    let variables = given(&[("SLUICE_DTA", "x"), ("SLUICE_RUN_ID", "r"), ("SLUICE_DATA", "d")]);
    let config = Config::load(&Sources { variables, ..Sources::default() }).unwrap();
    assert_eq!(config.strays, ["`SLUICE_DTA` is not a setting; did you mean `SLUICE_DATA`?"]);
}

#[test]
fn a_directory_that_is_named_is_meant_and_not_the_server() {
    let variables = || given(&[("SLUICE_URL", "http://127.0.0.1:7400/"), ("SLUICE_DATA", "d")]);
    let config = Config::load(&Sources { variables: variables(), ..Sources::default() }).unwrap();
    assert_eq!(config.server(), Some("http://127.0.0.1:7400"));
    let flags = given(&[("data", "e")]);
    let sources = Sources { variables: variables(), flags, ..Sources::default() };
    assert_eq!(Config::load(&sources).unwrap().server(), None);
}

#[test]
fn the_guide_lists_every_setting_as_it_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |setting: &Setting| {
        let default = setting.default.filter(|text| !text.is_empty());
        let default = default.map(|text| format!("`{text}`")).unwrap_or_default();
        let flag = setting.flag.map(|flag| format!("`--{flag}`")).unwrap_or_default();
        let (name, variable, takes) = (setting.name, setting.variable(), setting.kind.takes());
        let about = setting.about;
        format!("| `{name}` | `{variable}` | {flag} | {takes} | {default} | {about} |")
            .replace("|  |", "| |")
            .replace("|  |", "| |")
    };
    let table: Vec<String> = SETTINGS.iter().map(row).collect();
    let table = table.join("\n");
    assert!(page.contains(&table), "the table should be:\n{table}");
}

#[test]
fn a_server_of_tools_is_a_command_or_an_address() {
    let text = "[tool_servers.files]\ncommand = [\"bin/x\", \"-v\"]\nenv = [\"A_KEY\"]\n\
                [tool_servers.near]\ncommand = [\"node\"]\n\
                [tool_servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\nkey = \"env:FAR\"\n";
    let (dir, path) = in_dir(text);
    let config = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap();
    let shown: Vec<String> = config
        .tool_servers()
        .iter()
        .map(|server| format!("{} {}", server.setting(), server.to_json()))
        .collect();
    let program = dir.path().join("bin/x");
    let files = format!(
        r#"tool_servers.files {{"command":["{}","-v"],"env":["A_KEY"]}}"#,
        program.display()
    );
    let near = r#"tool_servers.near {"command":["node"],"env":[]}"#;
    let far = r#"tool_servers.far {"url":"http://127.0.0.1:1/mcp","key":"env:FAR"}"#;
    let mut expected = [files.as_str(), near, far];
    expected.sort_unstable();
    let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    shown.sort_unstable();
    assert_eq!(shown, expected);
    let pins = Arc::new(PinFile::new(Path::new("nowhere")));
    let secrets = Keyring::new("default", [], Vec::new());
    let opened = |server: &ToolServer| {
        server.open(&pins, &secrets).is_some_and(|opened| opened.name() == server.name)
    };
    assert!(config.tool_servers().iter().all(opened));
}

#[test]
fn everything_wrong_with_servers_of_tools_is_told_and_no_key_is_repeated() {
    for (fields, told) in [
        ("", "needs a `command` or a `url`, or `tools`"),
        ("command = [\"x\"]\nurl = \"http://x/\"", "has both a `command` and a `url`"),
        ("command = \"x\"", "has a `command` that is not a list of at most 100 texts"),
        ("command = [1]", "has a `command` that is not a list of at most 100 texts"),
        ("command = []", "has a `command` without a program"),
        ("command = [\"\"]", "has a `command` without a program"),
        ("command = [\"x\"]\nkey = \"env:K\"", "has a `key`, which only one with a `url` is shown"),
        ("command = [\"x\"]\nenv = [\"A=B\"]", "has an `env` with `A=B`, which names no variable"),
        ("url = \"http://x/\"\nenv = [\"A\"]", "has an `env`, which only a `command` sees"),
        ("url = \"ftp://x/\"", "has a `url` that has the scheme `ftp:`"),
        ("url = \"http://me:pw@x/\"", "has a `url` that has a user or password in its URL"),
        ("url = \"nowhere\"", "has a `url` that is not a URL with a host"),
        ("url = 1", "has a `url` that is not a text"),
        (
            "url = \"http://x/\"\nkey = \"hunter2\"",
            "has a `key` that cannot be used: this is not a ref",
        ),
        ("url = \"http://x/\"\nkay = \"env:K\"", "has no field `kay`; did you mean `key`?"),
    ] {
        let text = format!("[tool_servers.t]\n{fields}\n");
        let notes = file::read(&text, Path::new("")).unwrap_err().join("\n");
        assert!(notes.contains(&format!("`tool_servers.t` {told}")), "{fields}: {notes}");
        assert!(!notes.contains("hunter2") && !notes.contains("pw"), "{notes}");
    }
    for (text, told) in [
        (
            "[tool_servers.\"a.b\"]\ncommand = [\"x\"]\n",
            "line 1: `tool_servers.a.b` is not a valid name",
        ),
        ("[tool_servers]\nx = 1\n", "line 2: `tool_servers.x` is to be a table"),
        ("[tool_server.x]\ncommand = [\"x\"]\n", "did you mean `tool_servers`?"),
        ("tool_servers = 1\n", "line 1: `tool_servers` is to be a table of tables"),
    ] {
        let notes = file::read(text, Path::new("")).unwrap_err().join("\n");
        assert!(notes.contains(told), "{text}: {notes}");
    }
}

#[test]
fn a_database_counts_unless_a_directory_is_named_more_strongly() {
    let url = "postgres://sluice:s3cret@db.example:5432/sluice";
    let in_env = || given(&[("SLUICE_DATABASE_URL", url)]);
    let found = |variables, flags| {
        Config::load(&Sources { variables, flags, ..Sources::default() }).unwrap().database()
    };
    assert_eq!(found(in_env(), given(&[])).unwrap().as_deref(), Some(url));
    assert_eq!(found(in_env(), given(&[("data", "runs")])).unwrap(), None);
    let both = given(&[("data", "keys"), ("database-url", url)]);
    assert_eq!(found(given(&[]), both).unwrap().as_deref(), Some(url));
    let refused = found(given(&[("SLUICE_DATABASE_URL", "mysql://x:s3cret@y/z")]), given(&[]));
    let message = refused.unwrap_err().message;
    assert_eq!(message, "`database_url` is not a URL of a PostgreSQL database");
    let two = given(&[("url", "http://127.0.0.1:1"), ("database-url", url)]);
    assert!(Config::load(&Sources { flags: two, ..Sources::default() }).is_err());
}

#[test]
fn the_password_of_a_database_is_known_and_never_shown() {
    assert_eq!(super::value::password("postgres://a:b:c@h/d"), Some("b:c"));
    assert_eq!(super::value::password("postgres://a@h/d?x=:y@z"), None);
    assert_eq!(super::value::password("postgres:///d?host=/tmp"), None);
    let variables = given(&[("SLUICE_DATABASE_URL", "postgres://a:s3cret@h/d")]);
    let config = Config::load(&Sources { variables, ..Sources::default() }).unwrap();
    assert_eq!(config.shown(Name::DatabaseUrl), "(hidden)");
}

#[test]
fn secrets_are_declared_with_their_organisations_and_hosts() {
    let text = "[secrets.openai]\nfrom = \"env:OPENAI_API_KEY\"\nhosts = [\"api.openai.com\"]\n\
                [secrets.acme-1]\nfrom = \"file:keys/acme\"\norganisations = [\"acme\", \"*\"]\n\
                hosts = [\"*.acme.example\", \"127.0.0.1:8080\"]\n\
                [secrets.hook]\nfrom = \"env:HOOK\"\nhosts = []\n";
    let (dir, path) = in_dir(text);
    let config = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap();
    let shown: Vec<String> = config
        .secrets_from()
        .map(|(one, _)| {
            format!("{} = {}", super::secrets::setting(one), super::secrets::shown(one))
        })
        .collect();
    let file = dir.path().join("keys/acme").display().to_string();
    assert_eq!(
        shown,
        [
            format!(
                "secrets.acme-1 = file:{file} (for *.acme.example, 127.0.0.1:8080; named by acme, *)"
            ),
            "secrets.hook = env:HOOK (sent nowhere; named by default)".to_owned(),
            "secrets.openai = env:OPENAI_API_KEY (for api.openai.com; named by default)".to_owned(),
        ]
    );
}

#[test]
fn a_secret_that_is_not_declared_right_is_refused_and_not_repeated() {
    for (text, why) in [
        ("from = \"hunter2hunter2\"\nhosts = []", "neither `env:NAME` nor `file:PATH`"),
        ("from = \"secret:other\"\nhosts = []", "neither `env:NAME` nor `file:PATH`"),
        ("hosts = []", "needs `from`"),
        ("from = \"env:A\"", "needs `hosts`"),
        ("from = \"env:A\"\nhosts = \"a\"", "is not a list"),
        ("from = \"env:A\"\nhosts = [\"https://a\"]", "is not a host"),
        ("from = \"env:A\"\nhosts = []\norganisations = [\"A B\"]", "which cannot exist"),
        ("from = \"env:A\"\nhost = []", "did you mean `hosts`?"),
    ] {
        let (_dir, path) = in_dir(&format!("[secrets.one]\n{text}\n"));
        let refused =
            Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap_err();
        let told = refused.notes.join(" ");
        assert!(told.contains(why) && !told.contains("hunter2"), "{told}");
    }
    let (_dir, path) = in_dir("[secrets.\"a b\"]\nfrom = \"env:A\"\nhosts = []\n");
    assert!(Config::load(&Sources { file: Some(path), ..Sources::default() }).is_err());
}

#[test]
fn the_operator_declares_what_tools_do() {
    let text = r#"
        [tool_servers.mail]
        command = ["mail"]
        read_only_tools = ["list"]
        labels = ["mails"]
        origin = ["inbound_mail"]
        sensitive = ["customer"]
        sends_to = "internal"
        [tool_servers.mail.tools.send]
        labels = ["sends"]
        sends_to = "external"
        arguments = {recipients = "to", "attachments.file_id" = "what"}
        [tool_servers.mail.tools."get_*"]
        read_only = true
        records = ["id_"]
        private = ["subject", "body"]
        lists = ["names"]
        [tool_servers.pay.tools."*"]
        labels = ["pays"]
    "#;
    let (_dir, path) = in_dir(text);
    let config = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap();
    let declared = config.tool_servers().iter().map(ToolServer::declaration);
    let catalog = Catalog::new(&declared.collect::<Vec<_>>(), []);
    let send = catalog.tool("mail.send").unwrap();
    assert_eq!(send.facts.sends_to, Some(SendsTo::External));
    assert_eq!(send.facts.roles["attachments.file_id"], ArgumentRole::What);
    let get = catalog.tool("mail.get_unread").unwrap();
    assert_eq!((get.fields.private.len(), get.facts.sends_to), (2, Some(SendsTo::Internal)));
    assert!(get.facts.read_only && catalog.tool("mail.list").unwrap().facts.read_only);
    assert!(get.secrecy.contains("customer") && get.origins.contains("inbound_mail"));
    assert_eq!(&*catalog.tool("pay.all").unwrap().facts.labels, ["pays".into()]);
    let shown: Vec<String> = config.tool_servers().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["mail, 2 tools declared", "at a bridge, 1 tool declared"]);
    let shown = config.tool_servers()[0].to_json();
    assert_eq!(shown["tools"]["send"]["arguments"]["recipients"], "to");
    assert_eq!(shown["sensitive"], serde_json::json!(["customer"]));
    let secrets = Keyring::new("default", [], Vec::new());
    let pins = Arc::new(PinFile::new(Path::new("nowhere")));
    assert!(config.tool_servers()[1].open(&pins, &secrets).is_none());
}

#[test]
fn everything_wrong_with_declarations_of_tools_is_told() {
    let many = "\"x\", ".repeat(257);
    let many = format!("records = [{many}]");
    for (fields, told) in [
        ("label = [\"x\"]", "has no field `label`; did you mean `labels`?"),
        ("labels = \"x\"", "has `labels` that is not a list of at most 16 texts"),
        ("labels = [\"Pays\"]", "has `Pays` in `labels`, which is not a name"),
        ("origin = [\"\"]", "has `` in `origin`, which is not a name"),
        ("sensitive = [\"a b\"]", "has `a b` in `sensitive`, which is not a name"),
        ("sends_to = \"out\"", "has `sends_to` that is not one of `external`, `internal`, `none`"),
        ("read_only = \"yes\"", "has `read_only` that is neither `true` nor `false`"),
        ("records = [1]", "has `records` that is not a list of at most 256 texts"),
        (&many, "has `records` that is not a list of at most 256 texts"),
        ("private = [\"\"]", "has a name in `private` that is empty or over 256 bytes"),
        ("arguments = [\"to\"]", "has `arguments` that are not a table of at most 256 roles"),
        (
            "arguments = {to = \"whom\"}",
            "has an argument `to` whose role is not one of `to`, `what`",
        ),
    ] {
        let text =
            format!("[tool_servers.t]\ncommand = [\"x\"]\n[tool_servers.t.tools.send]\n{fields}");
        let notes = file::read(&text, Path::new("")).unwrap_err();
        assert_eq!(notes.len(), 1, "{notes:?}");
        let told = format!("line 4: `tool_servers.t.tools.send` {told}");
        assert!(notes[0].starts_with(&told), "{fields}: {notes:?}");
    }
    for (fields, told) in [
        ("sends_to = 1", "line 3: `tool_servers.t` has `sends_to` that"),
        ("records = [\"id\"]", "line 3: `tool_servers.t` has no field `records`"),
        ("tools = 1", "line 3: `tool_servers.t` has `tools` that are not a table of tables"),
        ("tools = {a = 1}", "line 3: `tool_servers.t.tools.a` is not a table"),
        ("tools = {\"*_a\" = {}}", "line 3: `tool_servers.t.tools.*_a` is not the name of a tool"),
        (
            "read_only_tools = [\"a\"]\ntools = {a = {read_only = false}}",
            "line 1: `tool_servers.t` has `a` in `read_only_tools`, which is declared not to be",
        ),
    ] {
        let text = format!("[tool_servers.t]\ncommand = [\"x\"]\n{fields}\n");
        let notes = file::read(&text, Path::new("")).unwrap_err().join("\n");
        assert!(notes.starts_with(told), "{fields}: {notes}");
    }
}
