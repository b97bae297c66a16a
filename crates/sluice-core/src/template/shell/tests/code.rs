//! Where a command executes data as code, and where not.

use super::*;

/// The warnings of a command: the descriptions, in order.
fn warned(source: &str) -> Vec<String> {
    let template = Template::parse(source).unwrap();
    let told = |fault: &Fault| {
        let prefix = format!("`${{{}}}` is read as code ", &source[fault.span.range()]);
        fault.message.strip_prefix(&prefix).expect("the message names the path").to_owned()
    };
    template.shell_code().iter().map(told).collect()
}

#[test]
fn data_that_a_program_reads_as_code_is_warned_of() {
    for (source, place) in [
        ("trap ${x} EXIT", "by `trap`"),
        ("let y=${x}", "by `let`"),
        ("${x} --help", "as the name of a command"),
        ("cd /tmp && FOO=1 ./bin/${x} a", "as the name of a command"),
        ("if ${x}; then echo; fi", "as the name of a command"),
        ("timeout 5 ${x}", "as the name of a command"),
        ("echo $(${x})", "as the name of a command"),
        (r#"python3 -c "print('${x}')""#, "by `python3`"),
        (r#"/usr/bin/python3 -B -c "print(${x})""#, "by `python3`"),
        (r#"node -e "console.log('${x}')""#, "by `node`"),
        (r#"node --eval "f('${x}')""#, "by `node`"),
        (r#"perl -ne "print if /${x}/" file"#, "by `perl`"),
        (r#"ruby -e "puts '${x}'""#, "by `ruby`"),
        (r#"eval "echo ${x}""#, "by `eval`"),
        ("eval echo ${x}", "by `eval`"),
        (r#"sh -c "echo ${x}""#, "by `sh`"),
        (r#"bash -o pipefail -ec "echo ${x} | wc""#, "by `bash`"),
        (r#"find . -exec sh -c "echo ${x}" \;"#, "by `sh`"),
        (r#"env A=1 sudo -E bash -c "id ${x}""#, "by `bash`"),
        ("bash <<END\necho ${x}\nEND", "by `bash`"),
        ("cat <<END | sh\necho ${x}\nEND\n", "by `sh`"),
        (r#"awk "/${x}/ {print}" file"#, "by `awk`"),
        (r#"sed -n "s/a/${x}/p" file"#, "by `sed`"),
        (r#"ssh host "ls ${x}""#, "by `ssh`"),
        ("export ${x}", "by `export`"),
        ("v=${x}\neval \"$v\"", "by `eval`"),
        ("n=${x}; echo $((n + 1))", "inside arithmetic"),
        (r#"echo "it is $(sh -c "echo ${x}")""#, "by `sh`"),
    ] {
        assert_eq!(warned(source), [place], "{source}");
    }
    assert_eq!(warned("eval ${x} ${y}; echo ${z}; ${w}").len(), 3);
}

#[test]
fn data_that_stays_data_is_not_warned_of() {
    for source in [
        "echo ${x}",
        r#"echo "eval ${x}; sh -c ${y}""#,
        "python3 tool.py -c ${x}",
        "python3 - ${x} <<'END'\nimport sys\nEND",
        r#"python3 -c "import sys" ${x}"#,
        r#"sh -c 'echo "$1"' sh ${x}"#,
        "awk -v n=${x} '$1 > n' file",
        "sed -n 1p ${x}",
        "sed -e s/a/b/ ${x}",
        "cat <<END > ${file}\n${x} eval ${y}\nEND\necho ${z}",
        "grep -e ${x} -- file",
        "export NAME=${x}",
        "NAME=${x} ./run",
        "case ${x} in a) echo;; esac",
        "[ ${x} = 1 ] && echo yes",
        "ssh ${host} uptime",
        "trap 'rm -f tmp' EXIT; echo ${x}",
        "# eval ${x}\necho ${y}",
        "n=1; v=${x}; echo $((n + 1))",
        "printf '%s' ${x} > ${y}",
        "curl -d @- ${x} | jq .",
        "expr ${x} + 1",
    ] {
        assert_eq!(warned(source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn commands_that_make_no_sense_are_read_to_their_end() {
    for source in ["", "'", "\"$(", "$((", "<<", "<<E", "`", "${x", "a <<E\n", &"$(".repeat(500)] {
        if let Ok(template) = Template::parse(source) {
            template.shell_code();
        }
    }
}
