//! Rendering of shell commands; [`hostile`] runs them with dangerous values.

mod code;
mod hostile;

use super::*;
use crate::limits::SHELL_DEPTH_MAX;
use crate::scope::names::Names;
use serde_json::json;

fn shell(source: &str) -> Result<ShellCommand, Vec<Fault>> {
    Template::parse(source).unwrap().shell()
}

fn script_of(source: &str) -> String {
    shell(source).unwrap_or_else(|faults| panic!("{source}: {faults:?}")).script
}

/// The positions of the rejected references.
fn refused(source: &str) -> Vec<String> {
    let faults = shell(source).expect_err(source);
    faults
        .iter()
        .map(|fault| {
            let prefix = format!("`${{{}}}` cannot be used ", &source[fault.span.range()]);
            let place = fault.message.strip_prefix(&prefix).expect("the message names the path");
            place.to_owned()
        })
        .collect()
}

#[test]
fn a_reference_becomes_a_variable_with_the_quotes_it_needs() {
    for (source, script) in [
        ("echo ${x}", r#"echo "$SLUICE_V1""#),
        ("echo --name=${x}.txt", r#"echo --name="$SLUICE_V1".txt"#),
        (r#"echo "${x}""#, r#"echo "${SLUICE_V1}""#),
        (r#"echo "a${x}b""#, r#"echo "a${SLUICE_V1}b""#),
        (r#"echo 'a' ${x}"#, r#"echo 'a' "$SLUICE_V1""#),
        (r#"echo 'it'\''s' ${x}"#, r#"echo 'it'\''s' "$SLUICE_V1""#),
        (r#"echo \" ${x}"#, r#"echo \" "$SLUICE_V1""#),
        (r#"echo "\"${x}""#, r#"echo "\"${SLUICE_V1}""#),
        (r#"echo "it's ${x}""#, r#"echo "it's ${SLUICE_V1}""#),
        ("echo $(cat ${x})", r#"echo $(cat "$SLUICE_V1")"#),
        (r#"echo "$(cat ${x})${x}""#, r#"echo "$(cat "$SLUICE_V1")${SLUICE_V1}""#),
        (r#"echo "$(cat "${x}")""#, r#"echo "$(cat "${SLUICE_V1}")""#),
        ("echo $( (cat) ${x} ) ${x}", r#"echo $( (cat) "$SLUICE_V1" ) "$SLUICE_V1""#),
        (r#"echo "$(a (b) ${x})${x}""#, r#"echo "$(a (b) "$SLUICE_V1")${SLUICE_V1}""#),
        ("(cd ${x}; ls)", r#"(cd "$SLUICE_V1"; ls)"#),
        ("echo # don't ${x}\necho ${x}", "echo # don't ${SLUICE_V1}\necho \"$SLUICE_V1\""),
        ("# don't\necho ${x}", "# don't\necho \"$SLUICE_V1\""),
        ("echo \\\n# don't\necho ${x}", "echo \\\n# don't\necho \"$SLUICE_V1\""),
        ("echo;# don't\necho ${x}", "echo;# don't\necho \"$SLUICE_V1\""),
        ("echo ${x}#'a'", "echo \"$SLUICE_V1\"#'a'"),
        ("echo $# ${x}", "echo $# \"$SLUICE_V1\""),
        ("echo $${HOME} ${x}", "echo ${HOME} \"$SLUICE_V1\""),
        ("echo \"$${HOME#a}\" ${x}", "echo \"${HOME#a}\" \"$SLUICE_V1\""),
        ("echo $((1 + (2))) ${x}", "echo $((1 + (2))) \"$SLUICE_V1\""),
        ("echo \"$((1 + 2))${x}\"", "echo \"$((1 + 2))${SLUICE_V1}\""),
        ("echo `date` ${x}", "echo `date` \"$SLUICE_V1\""),
        ("echo `echo \\`date\\`` ${x}", "echo `echo \\`date\\`` \"$SLUICE_V1\""),
        ("echo \"`date`${x}\"", "echo \"`date`${SLUICE_V1}\""),
        ("[ ${x} = y ] && ls", "[ \"$SLUICE_V1\" = y ] && ls"),
        ("[[ a == b ]] && echo ${x}", "[[ a == b ]] && echo \"$SLUICE_V1\""),
        ("ls a[0-9]${x}", "ls a[0-9]\"$SLUICE_V1\""),
        ("case ${x} in a) echo ${x};; esac", r#"case "$SLUICE_V1" in a) echo "$SLUICE_V1";; esac"#),
        ("cat <<< ${x}", r#"cat <<< "$SLUICE_V1""#),
        ("echo a \\\n ${x}", "echo a \\\n \"$SLUICE_V1\""),
        ("echo \"a$(b)\\\n${x}\"", "echo \"a$(b)\\\n${SLUICE_V1}\""),
        ("echo (${x}\\\n${x}", "echo (\"$SLUICE_V1\"\\\n\"$SLUICE_V1\""),
        ("echo é'é'${x}", "echo é'é'\"$SLUICE_V1\""),
        ("cat > ${x} < in", "cat > \"$SLUICE_V1\" < in"),
        ("echo 'a\\' ${x}", "echo 'a\\' \"$SLUICE_V1\""),
        ("f() { echo ${x}; }", "f() { echo \"$SLUICE_V1\"; }"),
        ("echo \"a\nb\" ${x}", "echo \"a\nb\" \"$SLUICE_V1\""),
        ("echo $(date\n) ${x}", "echo $(date\n) \"$SLUICE_V1\""),
        ("echo $(date # ')'\n) ${x}", "echo $(date # ')'\n) \"$SLUICE_V1\""),
        ("echo $$ '$' ${x}", "echo $$ '$' \"$SLUICE_V1\""),
    ] {
        assert_eq!(script_of(source), script, "{source}");
    }
}

#[test]
fn here_documents_are_like_double_quotes() {
    for (source, script) in [
        ("cat <<EOF\na \"${x}\"\nEOF\necho ${x}", "cat <<EOF\na \"${V}\"\nEOF\necho \"$V\""),
        ("cat << EOF\nit's ${x}\nEOF\necho ${x}", "cat << EOF\nit's ${V}\nEOF\necho \"$V\""),
        ("cat <<-EOF\n\t${x}\n\tEOF\necho ${x}", "cat <<-EOF\n\t${V}\n\tEOF\necho \"$V\""),
        ("cat <<EOF\n\tEOF\n${x}\nEOF\n${x}", "cat <<EOF\n\tEOF\n${V}\nEOF\n\"$V\""),
        ("cat <<EOF\n EOF\nEOF2\n${x}\nEOF\n${x}", "cat <<EOF\n EOF\nEOF2\n${V}\nEOF\n\"$V\""),
        ("cat <<'EOF'\n$(' \\\nEOF\necho ${x}", "cat <<'EOF'\n$(' \\\nEOF\necho \"$V\""),
        ("cat <<\"E F\"\n'\nE F\necho ${x}", "cat <<\"E F\"\n'\nE F\necho \"$V\""),
        ("cat <<\\EOF\n'\nEOF\necho ${x}", "cat <<\\EOF\n'\nEOF\necho \"$V\""),
        ("cat <<''\n'\n\necho ${x}", "cat <<''\n'\n\necho \"$V\""),
        ("cat <<A <<B\n'${x}\nA\n${x}'\nB\n${x}", "cat <<A <<B\n'${V}\nA\n${V}'\nB\n\"$V\""),
        ("cat <<A <<'B'\n${x}\nA\n$'\nB\n${x}", "cat <<A <<'B'\n${V}\nA\n$'\nB\n\"$V\""),
        ("cat <<EOF; echo ${x}\n${x}\nEOF\n", "cat <<EOF; echo \"$V\"\n${V}\nEOF\n"),
        ("cat <<EOF|wc\n${x}\nEOF\n", "cat <<EOF|wc\n${V}\nEOF\n"),
        ("cat <<EOF # don't\n${x}\nEOF\n", "cat <<EOF # don't\n${V}\nEOF\n"),
        ("cat <<EOF \\\n${x}\n${x}\nEOF\n", "cat <<EOF \\\n\"$V\"\n${V}\nEOF\n"),
        ("cat <<EOF\n$(echo ${x}) ${x}\nEOF\n", "cat <<EOF\n$(echo \"$V\") ${V}\nEOF\n"),
        ("cat <<EOF\n`date` $((1+1)) ${x}\nEOF\n", "cat <<EOF\n`date` $((1+1)) ${V}\nEOF\n"),
        ("cat <<EOF\n\\\\${x}\nEOF\n${x}", "cat <<EOF\n\\\\${V}\nEOF\n\"$V\""),
        ("cat <<EOF\na\\\nb\nEOF\n${x}", "cat <<EOF\na\\\nb\nEOF\n\"$V\""),
        ("cat <<EOF\nEOF${x}\n${x}\nEOF\n${x}", "cat <<EOF\nEOF${V}\n${V}\nEOF\n\"$V\""),
        ("cat <<EOF\n${x}EOF\n${x}\nEOF\n${x}", "cat <<EOF\n${V}EOF\n${V}\nEOF\n\"$V\""),
        ("cat <<EOF\nEOF$(a)\n${x}\nEOF\n${x}", "cat <<EOF\nEOF$(a)\n${V}\nEOF\n\"$V\""),
        ("cat <<EOF\n$(a)EOF\n${x}\nEOF\n${x}", "cat <<EOF\n$(a)EOF\n${V}\nEOF\n\"$V\""),
        ("echo $(cat <<EOF\n${x}'\nEOF\n) ${x}", "echo $(cat <<EOF\n${V}'\nEOF\n) \"$V\""),
        ("cat <<EOF\n", "cat <<EOF\n"),
    ] {
        let script = script.replace("$V", "$SLUICE_V1").replace("${V}", "${SLUICE_V1}");
        assert_eq!(script_of(source), script, "{source}");
    }
}

#[test]
fn a_reference_that_would_not_be_data_is_refused() {
    let arithmetic = "inside arithmetic, which may evaluate text as code";
    let mark = "inside a here-document with a quoted end mark";
    for (source, place) in [
        ("echo '${x}'", "inside single quotes"),
        ("echo \"$(echo '${x}')\"", "inside single quotes"),
        ("echo a#don't ${x}'", "inside single quotes"),
        ("echo \\# '${x}'", "inside single quotes"),
        ("echo ${y}#'${x}'", "inside single quotes"),
        ("echo \\a#'${x}'", "inside single quotes"),
        ("echo `cat ${x}`", "inside back-quotes"),
        ("echo \"`cat ${x}`\"", "inside back-quotes"),
        ("echo `a \\` ${x}`", "inside back-quotes"),
        ("echo $((${x} + 1))", arithmetic),
        ("echo \"$((${x}))\"", arithmetic),
        ("echo $(((1) + ${x}))", arithmetic),
        ("echo $(((1) + (2) + ${x}))", arithmetic),
        ("echo $(($(echo ${x})))", arithmetic),
        ("((${x} > 1))", arithmetic),
        ("echo $(a; ((${x})))", arithmetic),
        ("cat <<'EOF'\n${x}\nEOF", mark),
        ("cat <<\"EOF\"\n${x}\nEOF", mark),
        ("cat <<E\\OF\n${x}\nEOF", mark),
        ("cat <<E'O'F\n${x}\nEOF", mark),
        ("cat <<A <<'B'\nA\n${x}\nB", mark),
        ("echo \\${x}", "after a backslash"),
        ("echo \"\\${x}\"", "after a backslash"),
        ("cat <<EOF\n\\${x}\nEOF", "after a backslash"),
        ("echo $${HOME:-${x}}", "inside a parameter expansion"),
        ("echo \"$${HOME:-${x}}\"", "inside a parameter expansion"),
        ("echo $${HOME:-$(echo ${x})}", "inside a parameter expansion"),
        ("[[ ${x} -eq 1 ]]", "inside `[[ ]]`"),
        ("if [[ -n a && \"${x}\" -eq 1 ]]; then", "inside `[[ ]]`"),
        ("a[${x}]=1", "inside a subscript"),
        ("a_1[\"${x}\"]=1", "inside a subscript"),
    ] {
        assert_eq!(refused(source)[0], place, "{source}");
    }
}

#[test]
fn where_shells_disagree_later_references_are_refused() {
    let lost = "after quoting that is too complex";
    for source in [
        "echo $'it\\'s' ${x}",
        "echo $[1] ${x}",
        "echo \"$[1]\" ${x}",
        "echo \"$${a:-'}\" ${x}",
        "echo $${a:-\"b\"} ${x}",
        "echo $(('a')) ${x}",
        "echo $((\"a\")) ${x}",
        "echo $((`a`)) ${x}",
        "echo $((\\a)) ${x}",
        "echo $((a\n)) ${x}",
        "echo $((a;b)) ${x}",
        "echo \"$(case a in a) ls;; esac)\" ${x}",
        "cat <<$END\n${x}\n$END",
        "cat <<`a`\n${x}",
        "cat <<${x}\n",
        "cat <<E${x}\n",
        "cat <<\n${x}",
        "cat <<'E\nF'\n${x}",
        "cat <<'EOF\n${x}",
        "cat <<\\\\E\n${x}",
        "cat <<EOF \"a\n\" ${x}",
        "cat <<EOF $(a\n) ${x}",
        "echo $(cat <<EOF) ${x}",
        "cat <<EOF\n$(a\n) ${x}\nEOF",
        "cat <<EOF\n$(a \\\n) ${x}\nEOF",
        "cat <<EOF\n$${a\n} ${x}\nEOF",
        "cat <<EOF\n$(a # b\n) ${x}\nEOF",
        "cat <<EOF\n\\\nEOF\n${x}",
        "echo $(\\\n(${x}))",
        "echo $\\\n((${x}))",
        "echo \"$\\\n((${x}))\"",
        "cat <\\\n<'EOF'\n${x}\nEOF",
    ] {
        assert_eq!(refused(source)[0], lost, "{source}");
    }
    // Once the quoting is lost, it stays lost.
    assert_eq!(refused("echo $[1] ${x}\n\n${x}"), [lost, lost]);
}

#[test]
fn quoting_is_followed_to_a_bounded_depth() {
    let nested = |depth: usize| format!("{}${{x}}", "$(".repeat(depth));
    assert!(shell(&nested(SHELL_DEPTH_MAX - 1)).is_ok());
    assert_eq!(refused(&nested(SHELL_DEPTH_MAX)), ["after quoting that is too complex"]);
    // The stack would be walked at every line break.
    let source = format!("{}{}${{x}}", "\"$(".repeat(100_000), "x\n".repeat(300_000));
    assert!(shell(&source).is_err());
}

#[test]
fn every_refused_reference_is_reported_with_advice() {
    let faults = shell("echo '${a}' `${b}` ${c}").unwrap_err();
    let shown: Vec<_> = faults
        .iter()
        .map(|fault| (fault.message.as_str(), fault.hint.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(
        shown,
        [
            (
                "`${a}` cannot be used inside single quotes",
                "use double quotes, or no quotes at all"
            ),
            ("`${b}` cannot be used inside back-quotes", "use `$( )`"),
        ]
    );
}

#[test]
fn each_path_has_one_variable() {
    let command = shell("echo ${a} ${b.c} ${a} ${ a }").unwrap();
    assert_eq!(command.script, r#"echo "$SLUICE_V1" "$SLUICE_V2" "$SLUICE_V1" "$SLUICE_V1""#);
    let names: Vec<_> =
        command.variables.iter().map(|(name, path)| (name.as_str(), path.as_str())).collect();
    assert_eq!(names, [("SLUICE_V1", "a"), ("SLUICE_V2", "b.c")]);
}

#[test]
fn the_environment_holds_the_values_as_text() {
    let scope = Names::new()
        .with_variable("a", json!({"k": [1]}))
        .with_variable("n", json!(null))
        .with_variable("nul", json!("a\0b"))
        .with_skipped_step("gone");
    let env = |source: &str| shell(source).unwrap().render_env(&scope);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        env("${a} ${n} ${gone.x} ${a.k.length}"),
        Ok(vec![
            pair("SLUICE_V1", r#"{"k":[1]}"#),
            pair("SLUICE_V2", ""),
            pair("SLUICE_V3", ""),
            pair("SLUICE_V4", "1"),
        ])
    );
    assert_eq!(env("ls"), Ok(vec![]));
    assert_eq!(env("${x}").unwrap_err().to_string(), "`x` has no value");
    assert_eq!(env("${nul}").unwrap_err().to_string(), "`nul` has a NUL byte in its value");
}

#[test]
fn the_advice_for_arithmetic_is_not_a_variable() {
    for source in ["echo $((${x} + 1))", "a[${x}]=1"] {
        let faults = Template::parse(source).unwrap().shell().unwrap_err();
        let hint = faults[0].hint.as_deref().unwrap_or_default();
        assert!(hint.contains("`expr`") && !hint.contains("variable"), "{hint}");
    }
}
