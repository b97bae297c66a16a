use super::*;

fn day(year: impl Into<Option<u16>>, month: u16, day: u16) -> Day {
    Day { year: year.into(), month, day }
}

#[test]
fn days_are_found_in_every_notation() {
    let text = "may 19th, 2 of june 2024, 2024-05-01, sept. 3, 2023, 4 jul, 31st of dec, 2022";
    let expected = [
        day(2024, 5, 1),
        day(None, 5, 19),
        day(2023, 9, 3),
        day(2024, 6, 2),
        day(None, 7, 4),
        day(2022, 12, 31),
    ];
    assert_eq!(days(text), expected);
}

#[test]
fn what_only_looks_like_a_day_is_none() {
    for none in [
        "mayor 19",
        "dismay 19",
        "may 123",
        "12024-05-01",
        "2024-05-011",
        "2024-123-01",
        "123 may",
        "5 mayor",
        "may",
        "19",
        "may19",
        "12 often may",
        "",
    ] {
        assert_eq!(days(none), [], "{none}");
    }
    assert_eq!(days("may 12th5"), [day(None, 5, 12)]);
    assert_eq!(days("may 19, 20245"), [day(2024, 5, 19)]);
    assert_eq!(days("may 5thjune 6"), [day(None, 5, 5)]);
    assert_eq!(days("5 may 20246 june"), [day(2024, 5, 5)]);
}

#[test]
fn dates_with_a_month_are_blanked() {
    assert_eq!(undated("on june 13 for 5 days"), "on         for 5 days");
    assert_eq!(undated("5 may 6"), "5      ");
    assert_eq!(undated("on 13 june, 2024."), "on              .");
    assert_eq!(undated("on 2024-05-19"), "on 2024-05-19");
}

#[test]
fn times_are_found_in_every_notation() {
    assert_eq!(clocks("at 10:00, 6 pm or 12:30 am"), [600, 30, 1080]);
    assert_eq!(clocks("10:00:59.123 1:05pm 12am"), [600, 785, 0]);
    for none in ["10:0", "100:00", "10:000", "1:2:3", "10:00:00:00", "6 pmx", "1.6 pm", "pm", "6 p"]
    {
        assert_eq!(clocks(none), [0; 0], "{none}");
    }
    assert_eq!(clocks("10:00:5"), [0; 0]);
    assert_eq!(clocks("10:00.5:3"), [600]);
    assert_eq!(clocks("10:00 am5"), [600]);
}

#[test]
fn a_whole_text_is_a_moment() {
    let may = day(2024, 5, 19);
    for (text, time) in [
        ("2024-05-19", None),
        ("2024-5-19", None),
        ("2024-05-19 12:00", Some(720)),
        ("2024-05-19t12:00:00", Some(720)),
        ("2024-05-19t12:00:00.25z", Some(720)),
        ("2024-05-19 9:05", Some(545)),
    ] {
        assert_eq!(moment(text), Some((may, time)), "{text}");
    }
    for none in [
        "2024-05",
        "2024-05-19 12",
        "2024-05-19 12:0",
        "2024-05-19 12:00:",
        "2024-05-19x",
        "2024-05-19t12:00+02:00",
        "on 2024-05-19",
        "2024-05-19 12:00:00.",
        "",
    ] {
        assert_eq!(moment(none), None, "{none}");
    }
}
