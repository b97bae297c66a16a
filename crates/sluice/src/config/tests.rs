use super::setting::{Name, SETTINGS, Setting};
use super::value::{Secret, Value};
use super::{Config, Source, Sources, file};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn given(pairs: &[(&str, &str)]) -> super::Given {
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
    assert_eq!(config.strays, ["`SLUICE_DTA` is no setting; did you mean `SLUICE_DATA`?"]);
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
