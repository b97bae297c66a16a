//! Invalid expressions and their messages.

use crate::expr::Expr;
use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX};
use expect_test::{Expect, expect};

/// Each source, the position marked below it, the message and the hint.
fn check(sources: &[&str], expected: &Expect) {
    let mut out = String::new();
    for source in sources {
        let fault = Expr::parse(source).expect_err(source);
        let range = fault.span.range();
        let before = source[..range.start].chars().count();
        let marked = source[range].chars().count().max(1);
        out.push_str(&format!("{source}\n{}{} ", " ".repeat(before), "^".repeat(marked)));
        out.push_str(&fault.message);
        if let Some(hint) = &fault.hint {
            out.push_str(&format!("; {hint}"));
        }
        out.push('\n');
    }
    expected.assert_eq(&out);
}

#[test]
fn wrong_operators_are_explained() {
    check(
        &[
            "a = 1",
            "a === 1",
            "a & b",
            "a | b",
            "a + 1",
            "a * 2",
            "a % 2",
            "a / 2",
            "a - b",
            "a -1",
            "a < b < c",
            "a == b == c",
            "a in [1] in [2]",
            "a AND b",
            "a is b",
            "a b",
            "a not b",
            "a == not b",
            "a == !b",
            "not",
            "a and",
            "or a",
            "a ==",
            "== a",
            "a in",
            "a <> b",
            "a ? b",
            "a; b",
            "“a” == b",
            ".5",
            "{a}",
            "a: 1",
        ],
        &expect![[r#"
            a = 1
              ^ unexpected `=`; use `==`
            a === 1
                ^ unexpected `=`; use `==`
            a & b
              ^ unexpected `&`; use `and` or `&&`
            a | b
              ^ unexpected `|`; use `or` or `||`
            a + 1
              ^ unexpected `+`; expressions have no arithmetic
            a * 2
              ^ unexpected `*`; expressions have no arithmetic
            a % 2
              ^ unexpected `%`; expressions have no arithmetic
            a / 2
              ^ unexpected `/`; expressions have no arithmetic
            a - b
              ^ unexpected `-`; expressions have no arithmetic
            a -1
              ^^ expected an operator or the end, found `-1`; expressions have no arithmetic
            a < b < c
                  ^ comparisons do not chain; write `a < b and b < c`, or use parentheses
            a == b == c
                   ^^ comparisons do not chain; write `a < b and b < c`, or use parentheses
            a in [1] in [2]
                     ^^ comparisons do not chain; write `a < b and b < c`, or use parentheses
            a AND b
              ^^^ expected an operator or the end, found `AND`; operators are in lower case
            a is b
              ^^ expected an operator or the end, found `is`; use `==`
            a b
              ^ expected an operator or the end, found `b`
            a not b
                  ^ expected `in` after `not`, found `b`
            a == not b
                 ^^^ expected a value, found `not`; put the negation in parentheses
            a == !b
                 ^ expected a value, found `!`; put the negation in parentheses
            not
               ^ expected a value, found the end
            a and
                 ^ expected a value, found the end
            or a
            ^^ expected a value, found `or`
            a ==
                ^ expected a value, found the end
            == a
            ^^ expected a value, found `==`
            a in
                ^ expected a value, found the end
            a <> b
               ^ expected a value, found `>`
            a ? b
              ^ unexpected `?`
            a; b
             ^ unexpected `;`
            “a” == b
            ^ unexpected `“`; use straight quotes: ' or "
            .5
            ^ unexpected `.`; a number begins with a digit, a path with a name
            {a}
            ^ unexpected `{`
            a: 1
             ^ unexpected `:`
        "#]],
    );
}

#[test]
fn wrong_operands_are_explained() {
    check(
        &[
            "(",
            ")",
            "(a",
            "(a b)",
            "()",
            "[",
            "[1",
            "[1 2]",
            "[1, 2",
            "[,]",
            "a]",
            "'abc",
            "'\\x'",
            "1.",
            "1.x",
            "3f2a",
            "1e",
            "12ab.c == 1",
            "18446744073709551616",
            "-9223372036854775809",
            "1e400",
            "-1e400",
            "a.",
            "a[b]",
            "a[0",
            "${",
            "${}",
            "${a",
            "${a b}",
            "${a == 1}",
            "$",
            "$ a",
            "a in 'abc'",
            "a in 5",
            "a not in null",
        ],
        &expect![[r#"
            (
             ^ expected a value, found the end
            )
            ^ expected a value, found `)`
            (a
            ^ unclosed `(`
            (a b)
               ^ expected an operator or `)`, found `b`
            ()
             ^ expected a value, found `)`
            [
             ^ expected a value, found the end
            [1
            ^ unclosed `[`
            [1 2]
               ^ expected `,` or `]`, found `2`
            [1, 2
            ^ unclosed `[`
            [,]
             ^ expected a value, found `,`
            a]
             ^ expected an operator or the end, found `]`
            'abc
            ^^^^ unclosed string; end it with '
            '\x'
             ^^ unknown escape `\x`; the escapes are \\ \' \" \n \t \r \uXXXX; write `\\` for a backslash
            1.
            ^^ expected a digit after `.`, found the end
            1.x
            ^^ expected a digit after `.`, found `x`
            3f2a
            ^^^^ `3f2a` is neither a number nor a name; if it is an id, write `$3f2a`
            1e
            ^^ `1e` is neither a number nor a name; if it is an id, write `$1e`
            12ab.c == 1
            ^^^^ `12ab` is neither a number nor a name; if it is an id, write `$12ab`
            18446744073709551616
            ^^^^^^^^^^^^^^^^^^^^ `18446744073709551616` is out of range
            -9223372036854775809
            ^^^^^^^^^^^^^^^^^^^^ `-9223372036854775809` is out of range
            1e400
            ^^^^^ `1e400` is out of range
            -1e400
            ^^^^^^ `-1e400` is out of range
            a.
             ^ expected a name or an index after `.`, found the end
            a[b]
             ^^ expected an index or a quoted key after `[`, found `b`; write `[0]` or `["key"]`
            a[0
             ^^ expected `]`, found the end
            ${
              ^ expected a name, found the end
            ${}
              ^ expected a name, found `}`
            ${a
               ^ expected `}` after the path, found the end
            ${a b}
                ^ expected `}` after the path, found `b`
            ${a == 1}
                ^ expected `}` after the path, found `=`
            $
             ^ expected a name, found the end
            $ a
             ^ expected a name, found a blank
            a in 'abc'
                 ^^^^^ `in` needs a list on its right, found string; to search a text use `contains(text, part)`
            a in 5
                 ^ `in` needs a list on its right, found integer; to search a text use `contains(text, part)`
            a not in null
                     ^^^^ `in` needs a list on its right, found null; to search a text use `contains(text, part)`
        "#]],
    );
}

#[test]
fn wrong_calls_are_explained() {
    check(
        &[
            "contain(a, 'b')",
            "Contains(a, 'b')",
            "startswith(a, 'b')",
            "exist(a)",
            "len(a)",
            "x(a)",
            "abclower(a)",
            "abcdlower(a)",
            "lowerabcd(a)",
            "system('rm')",
            "a.contains('b')",
            "$lower(a)",
            "contains(a)",
            "contains()",
            "1 == lower() and b",
            "lower(a, b)",
            "exists(a, b)",
            "matches(a, 'b', 'c')",
            "exists('a')",
            "exists(a == 1)",
            "exists(lower(a))",
            "matches(a, b)",
            "matches(a, 5)",
            "matches(a, '(')",
            "matches(a, '(?=x)')",
            "contains(a, 'b'",
            "contains(a 'b')",
            "contains(, a)",
            "lower a",
            "lower('a').length",
        ],
        &expect![[r#"
            contain(a, 'b')
            ^^^^^^^ unknown function `contain`; did you mean `contains`?
            Contains(a, 'b')
            ^^^^^^^^ unknown function `Contains`; did you mean `contains`?
            startswith(a, 'b')
            ^^^^^^^^^^ unknown function `startswith`; did you mean `starts_with`?
            exist(a)
            ^^^^^ unknown function `exist`; did you mean `exists`?
            len(a)
            ^^^ unknown function `len`; the functions are contains, starts_with, matches, exists, lower
            x(a)
            ^ unknown function `x`; the functions are contains, starts_with, matches, exists, lower
            abclower(a)
            ^^^^^^^^ unknown function `abclower`; the functions are contains, starts_with, matches, exists, lower
            abcdlower(a)
            ^^^^^^^^^ unknown function `abcdlower`; the functions are contains, starts_with, matches, exists, lower
            lowerabcd(a)
            ^^^^^^^^^ unknown function `lowerabcd`; the functions are contains, starts_with, matches, exists, lower
            system('rm')
            ^^^^^^ unknown function `system`; the functions are contains, starts_with, matches, exists, lower
            a.contains('b')
            ^^^^^^^^^^ `a.contains` is not a function; values have no methods; the functions are contains, starts_with, matches, exists, lower
            $lower(a)
            ^^^^^^ unknown function `$lower`; did you mean `lower`?
            contains(a)
            ^^^^^^^^^^^ `contains` takes 2 arguments, found 1
            contains()
            ^^^^^^^^^^ `contains` takes 2 arguments, found 0
            1 == lower() and b
                 ^^^^^^^ `lower` takes 1 argument, found 0
            lower(a, b)
            ^^^^^^^^^^^ `lower` takes 1 argument, found 2
            exists(a, b)
            ^^^^^^^^^^^^ `exists` takes 1 argument, found 2
            matches(a, 'b', 'c')
            ^^^^^^^^^^^^^^^^^^^^ `matches` takes 2 arguments, found 3
            exists('a')
                   ^^^ `exists` takes a path; for example `exists(init.outputs.report)`
            exists(a == 1)
                   ^^^^^^ `exists` takes a path; for example `exists(init.outputs.report)`
            exists(lower(a))
                   ^^^^^^^^ `exists` takes a path; for example `exists(init.outputs.report)`
            matches(a, b)
                       ^ the pattern of `matches` must be a string literal; patterns are checked before the run starts
            matches(a, 5)
                       ^ the pattern of `matches` must be a string literal; patterns are checked before the run starts
            matches(a, '(')
                       ^^^ bad regular expression: unclosed group
            matches(a, '(?=x)')
                       ^^^^^^^ bad regular expression: look-around, including look-ahead and look-behind, is not supported
            contains(a, 'b'
                    ^ unclosed `(`
            contains(a 'b')
                       ^^^ expected `,` or `)`, found `'b'`
            contains(, a)
                     ^ expected a value, found `,`
            lower a
                  ^ expected an operator or the end, found `a`
            lower('a').length
                      ^ unexpected `.`; a number begins with a digit, a path with a name
        "#]],
    );
}

#[test]
fn an_expression_without_a_token_is_empty() {
    for source in ["", "  ", "\n\t"] {
        let fault = Expr::parse(source).unwrap_err();
        assert_eq!(fault.message, "expression is empty");
        assert_eq!(fault.span.range(), 0..source.len());
    }
}

#[test]
fn expressions_are_bounded_in_length_and_depth() {
    let longest = format!("'{}'", "x".repeat(EXPRESSION_BYTES_MAX - 2));
    assert!(Expr::parse(&longest).is_ok());
    let fault = Expr::parse(&format!("{longest} ")).unwrap_err();
    assert_eq!(fault.message, "expression is over 4096 bytes");

    let max = EXPRESSION_DEPTH_MAX;
    for (open, close) in [("(", ")"), ("[", "]"), ("lower(", ")"), ("not ", ""), ("!", "")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(Expr::parse(&nested(max)).is_ok(), "{open}");
        let fault = Expr::parse(&nested(max + 1)).unwrap_err();
        assert_eq!(fault.message, "expression is nested over 32 deep", "{open}");
    }
    // Depth is nesting, not length.
    assert!(Expr::parse(&["(1)"; 200].join(" and ")).is_ok());
}
