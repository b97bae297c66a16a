//! Environment variables of a command.

use super::outcome::{refusal, variable_too_long};
use crate::limits::ARGUMENT_BYTES_MAX;
use sluice_core::port::adapter::{CallError, Request};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that a command inherits.
const ALLOWED: &[&str] =
    &["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
/// Prefixes of inherited variables. Sluice's own settings are not among them, because they
/// contain tokens and the database password.
const ALLOWED_PREFIXES: &[&str] = &["LC_", "LOBSTER_"];
/// Prefix of Sluice's own settings.
const SETTINGS: &str = "SLUICE_";

/// Inherited variables, then those of the step, then those that identify the step; later ones
/// win.
pub(super) fn command_environment(
    own: &[(OsString, OsString)],
    request: &Request,
) -> Result<Vec<(OsString, OsString)>, CallError> {
    let mut all: BTreeMap<OsString, OsString> =
        own.iter().filter(|(name, _)| is_allowed(name)).cloned().collect();
    for (name, value) in &request.env {
        check(name, value)?;
        all.insert(name.into(), value.into());
    }
    for (name, value) in [
        ("SLUICE_RUN_ID", request.run.to_string()),
        ("SLUICE_STEP_ID", request.step.clone()),
        ("SLUICE_ATTEMPT", request.attempt.to_string()),
        ("SLUICE_DISPATCH_NO", request.dispatch_no.to_string()),
        ("SLUICE_IDEMPOTENCY_KEY", request.idempotency_key.clone()),
    ] {
        all.insert(name.into(), value.into());
    }
    let too_long = |(name, value): &(&OsString, &OsString)| {
        // An `=` between them and a zero byte at the end.
        name.len() + value.len() + 2 > ARGUMENT_BYTES_MAX
    };
    match all.iter().find(too_long) {
        Some((name, _)) => Err(variable_too_long(&name.to_string_lossy())),
        None => Ok(all.into_iter().collect()),
    }
}

/// Environment of a process that does not belong to a step: the inherited and the named
/// variables, but never Sluice's own settings, which may contain tokens.
pub(crate) fn process_environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let seen = |name: &OsString| {
        let Some(name) = name.to_str() else { return false };
        let named = !is_setting(name) && named.iter().any(|one| one == name);
        named || ALLOWED.contains(&name) || name.starts_with("LC_")
    };
    own.into_iter().filter(|(name, _)| seen(name)).collect()
}

/// Whether a variable is one of Sluice's own settings.
fn is_setting(name: &str) -> bool {
    name.starts_with(SETTINGS)
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn check(name: &str, value: &str) -> Result<(), CallError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(refusal(format!("{name:?} is not a valid name of an environment variable")));
    }
    if value.contains('\0') {
        return Err(refusal(format!("the environment variable {name} contains a zero byte")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_call::request;

    fn names(own: &[&str], env: &[(&str, &str)]) -> Result<String, String> {
        let own: Vec<_> = own.iter().map(|name| (name.into(), "own".into())).collect();
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let request = Request { env, ..request("a", "true") };
        let all = command_environment(&own, &request).map_err(|error| error.message)?;
        let written = |(name, value): &(OsString, OsString)| {
            format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
        };
        let ours = ["RUN_ID", "STEP_ID", "ATTEMPT", "DISPATCH_NO", "IDEMPOTENCY_KEY"];
        let is_ours = |text: &String| ours.iter().any(|name| text.contains(name));
        Ok(all.iter().map(written).filter(|text| !is_ours(text)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn only_allowed_variables_are_inherited() {
        let own = ["PATH", "LC_ALL", "LOBSTER_X", "SLUICE_X", "AWS_SECRET", "LD_PRELOAD", "PATHS"];
        let seen = "LC_ALL=own LOBSTER_X=own PATH=own";
        assert_eq!(names(&own, &[]).unwrap(), seen);
    }

    #[test]
    fn step_variables_win_over_inherited_ones_and_ids_win_over_both() {
        let env = [("PATH", "step"), ("AWS_SECRET", "step"), ("SLUICE_RUN_ID", "forged")];
        assert_eq!(names(&["PATH", "SLUICE_STEP_ID"], &env).unwrap(), "AWS_SECRET=step PATH=step");
        let request = Request {
            env: vec![("SLUICE_RUN_ID".to_owned(), "forged".to_owned())],
            ..request("a[1]", "true")
        };
        let all = command_environment(&[], &request).unwrap();
        assert!(all.contains(&("SLUICE_RUN_ID".into(), request.run.to_string().into())));
        assert!(all.contains(&("SLUICE_STEP_ID".into(), "a[1]".into())));
        assert!(all.contains(&("SLUICE_ATTEMPT".into(), "1".into())));
        assert!(all.contains(&("SLUICE_DISPATCH_NO".into(), "1".into())));
        assert!(all.contains(&("SLUICE_IDEMPOTENCY_KEY".into(), "key".into())));
    }

    #[test]
    fn an_impossible_variable_is_rejected_by_name() {
        for (name, value, message) in [
            ("", "x", "\"\" is not a valid name of an environment variable"),
            ("A=B", "x", "\"A=B\" is not a valid name of an environment variable"),
            ("A", "x\0", "the environment variable A contains a zero byte"),
        ] {
            assert_eq!(names(&[], &[(name, value)]).unwrap_err(), message);
        }
        let fits = "x".repeat(ARGUMENT_BYTES_MAX - 3);
        assert!(names(&[], &[("A", &fits)]).is_ok());
        let message = names(&[], &[("A", &format!("{fits}x"))]).unwrap_err();
        assert!(message.contains("variable A exceeds 128 KiB"), "{message}");
    }
}
