use super::*;

fn problem(code: Code, at: usize, message: &str) -> Problem {
    Problem::new(code, Span::new(at, at + 1), message)
}

fn told(problems: Problems, text: &str) -> Vec<String> {
    let line =
        |one: Diagnostic| format!("{}:{} {} {}", one.line, one.column, one.code, one.message);
    problems.into_diagnostics(text).into_iter().map(line).collect()
}

#[test]
fn problems_come_in_document_order_then_in_order_of_code_then_as_found() {
    let mut problems = Problems::default();
    problems.add(problem(Code::UnknownVariable, 4, "late warning"));
    problems.add(problem(Code::BadName, 4, "z"));
    problems.add(problem(Code::BadName, 4, "a"));
    problems.add(problem(Code::WrongType, 4, "earlier code"));
    problems.add(problem(Code::BadName, 0, "first"));
    problems.add(Problem::new(Code::BadName, Span::new(4, 9), "longer"));
    assert_eq!(
        told(problems, "ab\ncdefghij"),
        [
            "1:1 bad_name first",
            "2:2 wrong_type earlier code",
            "2:2 bad_name z",
            "2:2 bad_name a",
            "2:2 unknown_variable late warning",
            "2:2 bad_name longer",
        ]
    );
}

#[test]
fn a_problem_is_told_once_however_often_and_in_whatever_order_it_is_found() {
    let mut problems = Problems::default();
    for _ in 0..3 {
        problems.add(problem(Code::BadName, 0, "one"));
        problems.add(problem(Code::BadName, 0, "two"));
    }
    problems.add(problem(Code::BadName, 1, "one"));
    problems.add(problem(Code::BadValue, 0, "one"));
    assert_eq!(
        told(problems, "ab"),
        ["1:1 bad_value one", "1:1 bad_name one", "1:1 bad_name two", "1:2 bad_name one"]
    );
}

#[test]
fn two_hundred_problems_are_told_and_the_rest_counted() {
    let text = "x".repeat(1000);
    for (count, last) in [
        (PROBLEMS_MAX, "1:200 bad_name m"),
        (PROBLEMS_MAX + 1, "1:1001 more_problems 1 more problem is not shown"),
        (PROBLEMS_MAX + 2, "1:1001 more_problems 2 more problems are not shown"),
    ] {
        let mut problems = Problems::default();
        for at in 0..count {
            assert_eq!(problems.is_full(), at >= PROBLEMS_MAX);
            problems.add(problem(Code::BadName, at, "m"));
        }
        let told = told(problems, &text);
        assert_eq!(told.len(), count.min(PROBLEMS_MAX + 1));
        assert_eq!(told.last().expect("many"), last);
    }
}

#[test]
fn what_is_told_already_is_not_counted_again() {
    let mut problems = Problems::default();
    for at in 0..PROBLEMS_MAX {
        problems.add(problem(Code::BadName, at, "m"));
    }
    problems.add(problem(Code::BadName, 7, "m"));
    assert_eq!(told(problems, &"x".repeat(300)).len(), PROBLEMS_MAX);
}

#[test]
fn warnings_never_hide_an_error() {
    let mut problems = Problems::default();
    for at in 0..PROBLEMS_MAX + 50 {
        problems.add(problem(Code::UnknownVariable, at, "w"));
    }
    problems.add(problem(Code::BadName, 900, "the error"));
    problems.add(problem(Code::UnusedRole, 901, "one more warning"));
    assert!(problems.has_errors());
    let told = told(problems, &"x".repeat(1000));
    assert_eq!(told.len(), PROBLEMS_MAX + 1);
    assert_eq!(
        told[PROBLEMS_MAX - 2..],
        [
            "1:199 unknown_variable w",
            "1:901 bad_name the error",
            "1:1001 more_problems 52 more problems are not shown",
        ]
    );
}

#[test]
fn errors_in_number_hide_later_errors_but_are_still_counted() {
    let mut problems = Problems::default();
    for at in 0..PROBLEMS_MAX * 2 {
        problems.add(problem(Code::BadName, at, "m"));
    }
    let told = told(problems, &"x".repeat(1000));
    assert_eq!(told[PROBLEMS_MAX - 1], "1:200 bad_name m");
    assert_eq!(told[PROBLEMS_MAX], "1:1001 more_problems 200 more problems are not shown");
}

#[test]
fn of_what_could_not_be_read_nothing_else_is_told() {
    let mut problems = Problems::default();
    problems.add(problem(Code::NumberOutOfRange, 0, "too large").conclusive());
    problems.add(problem(Code::WrongType, 0, "no number"));
    problems.add(problem(Code::WrongType, 1, "elsewhere"));
    assert_eq!(
        told(problems, "ab"),
        ["1:1 number_out_of_range too large", "1:2 wrong_type elsewhere"]
    );
}

#[test]
fn only_errors_refuse_a_document() {
    let mut problems = Problems::default();
    assert!(!problems.has_errors());
    problems.add(problem(Code::UnusedRole, 0, "w"));
    assert!(!problems.has_errors());
    problems.add(problem(Code::BadName, 0, "e"));
    assert!(problems.has_errors());
    let found = problems.into_diagnostics("x");
    assert_eq!(found.iter().map(Diagnostic::is_error).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn places_are_lines_and_characters_from_one() {
    let text = "ab\nä€😀x\n\r\nlast";
    let place = |at: usize| {
        let mut problems = Problems::default();
        problems.add(Problem::new(Code::BadName, Span::new(at, at), "m"));
        let found = problems.into_diagnostics(text).remove(0);
        (found.line, found.column)
    };
    assert_eq!(place(0), (1, 1));
    assert_eq!(place(2), (1, 3), "the line end belongs to its line");
    assert_eq!(place(3), (2, 1));
    assert_eq!(place(5), (2, 2), "after two bytes");
    assert_eq!(place(8), (2, 3), "after three bytes");
    assert_eq!(place(12), (2, 4), "after four bytes");
    assert_eq!(place(14), (3, 1));
    assert_eq!(place(16), (4, 1));
    assert_eq!(place(text.len()), (4, 5), "the end");
    assert_eq!(place(text.len() + 100), (4, 5), "past the end is the end");
    assert_eq!(place(usize::MAX), (4, 5));
}

#[test]
fn a_byte_order_mark_has_no_column() {
    for (at, column) in [(0, 1), (3, 1), (4, 2)] {
        let mut problems = Problems::default();
        problems.add(problem(Code::BadName, at, "m"));
        assert_eq!(told(problems, "\u{feff}ab"), [format!("1:{column} bad_name m")]);
    }
}

#[test]
fn a_long_path_is_shortened() {
    for (count, told) in [(1000, 1000), (1001, 1001), (100_000, 1001)] {
        let mut problems = Problems::default();
        problems.add(problem(Code::BadName, 0, "m").at_path("ä".repeat(count)));
        let path = problems.into_diagnostics("x").remove(0).path;
        assert_eq!((path.chars().count(), path.ends_with('…')), (told, count > 1000));
    }
}

#[test]
fn a_suggestion_becomes_the_hint_and_none_leaves_it() {
    let with = |likely| {
        let mut problems = Problems::default();
        let plain = problem(Code::BadName, 0, "m").with_hint("plain");
        problems.add(plain.with_suggestion(likely).at_path("a.b").at_span(Span::new(1, 2)));
        let found = problems.into_diagnostics("xy").remove(0);
        (found.hint, found.path, found.column)
    };
    let path = || "a.b".to_owned();
    assert_eq!(with(Some("x")), (Some("did you mean `x`?".to_owned()), path(), 2));
    assert_eq!(with(None), (Some("plain".to_owned()), path(), 2));
}

#[test]
fn programs_see_the_code_as_text_and_no_bytes() {
    let mut problems = Problems::default();
    problems.add(problem(Code::BadName, 0, "m").at_path("a"));
    let json = serde_json::to_value(problems.into_diagnostics("x")).expect("JSON");
    let expected = serde_json::json!([
        { "code": "bad_name", "message": "m", "path": "a", "line": 1, "column": 1 }
    ]);
    assert_eq!(json, expected);
}
