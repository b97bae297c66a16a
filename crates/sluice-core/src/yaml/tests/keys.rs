//! Keys, and keys that are set twice.

use super::*;

#[test]
fn a_key_is_the_text_of_any_scalar() {
    check(
        "1: a\ntrue: b\n1.50: c\n0x1F: d\n-.5: e\n'q': f\n\"\\u0041\": g\nyes: h\n2026-11-15: i\n",
        expect![[r#"
            {"1":"a","true":"b","1.50":"c","0x1F":"d","-.5":"e","q":"f","A":"g","yes":"h","2026-11-15":"i"}
        "#]],
    );
}

#[test]
fn a_key_may_be_a_number_that_64_bits_cannot_hold() {
    check(
        "{1234567890123456789012345678901234567890: a, .inf: b, 1e999: c}",
        expect![[r#"
        {"1234567890123456789012345678901234567890":"a",".inf":"b","1e999":"c"}
    "#]],
    );
}

#[test]
fn an_alias_may_be_a_key_and_means_what_was_anchored() {
    check(
        "a: &x 0x10\nb: &y name\n*x : 1\n*y : 2\n",
        expect![[r#"
        {"a":16,"b":"name","0x10":1,"name":2}
    "#]],
    );
    check(
        "&k 5: v\nw: *k\n",
        expect![[r#"
        {"5":"v","w":5}
    "#]],
    );
}

#[test]
fn nothing_lists_and_maps_are_no_keys() {
    check(
        "a:\n  ~: 1\n",
        expect![[r#"
        none
        2:3 bad_key a: a key must be text, not nothing
    "#]],
    );
    check(
        "a:\n  : 1\n",
        expect![[r#"
        none
        2:3 bad_key a: a key must be text, not nothing
    "#]],
    );
    check(
        "x: [1, {[a, b]: 1}]\n",
        expect![[r#"
        none
        1:9 bad_key x[1]: a key must be text, not a list
    "#]],
    );
    check(
        "{a: 1}: 2\n",
        expect![[r#"
        none
        1:1 bad_key: a key must be text, not a map
    "#]],
    );
    check(
        "a: &m {b: 1}\n*m : 2\n",
        expect![[r#"
        none
        2:1 bad_key: a key must be text, not a map
    "#]],
    );
}

#[test]
fn a_key_set_twice_is_told_with_both_lines_and_the_first_kept() {
    check(
        "a: 1\nb: 2\na: 3\n",
        expect![[r#"
        {"a":1,"b":2}
        3:1 duplicate_key: the key `a` is set twice (it is first set on line 1)
    "#]],
    );
    check(
        "a: 1\nb: 2\n'a': 3\nb: 4\na: 5\n",
        expect![[r#"
        {"a":1,"b":2}
        3:1 duplicate_key: the key `a` is set twice (it is first set on line 1)
        4:1 duplicate_key: the key `b` is set twice (it is first set on line 2)
        5:1 duplicate_key: the key `a` is set twice (it is first set on line 1)
    "#]],
    );
    check(
        "steps:\n  - id: x\n  - id: y\n    outputs:\n      r: 1\n      r: 2\n",
        expect![[r#"
        {"steps":[{"id":"x"},{"id":"y","outputs":{"r":1}}]}
        6:7 duplicate_key steps[1].outputs: the key `r` is set twice (it is first set on line 5)
    "#]],
    );
    check(
        "1: a\n'1': b\n0x1: c\n",
        expect![[r#"
        {"1":"a","0x1":"c"}
        2:1 duplicate_key: the key `1` is set twice (it is first set on line 1)
    "#]],
    );
}

#[test]
fn a_key_set_twice_in_a_large_map_is_told_alike() {
    let mut text: String = (0..40).map(|n| format!("k{n}: {n}\n")).collect();
    text.push_str("k3: x\nk20: x\nk3: y\n");
    let shown = transcript(&text);
    assert!(shown.contains(r#""k3":3,"#) && shown.contains(r#""k20":20,"#), "{shown}");
    let told: Vec<&str> = shown.lines().skip(1).collect();
    expect![[r#"
        41:1 duplicate_key: the key `k3` is set twice (it is first set on line 4)
        42:1 duplicate_key: the key `k20` is set twice (it is first set on line 21)
        43:1 duplicate_key: the key `k3` is set twice (it is first set on line 4)"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn twelve_and_thirteen_keys_are_compared_alike() {
    for count in 2..20 {
        let keys: String = (1..count).map(|n| format!("k{n}: {n}\n")).collect();
        let text = format!("a: 0\n{keys}a: 1\n");
        assert_eq!(codes(&text), ["duplicate_key"], "{count}");
        assert!(transcript(&text).contains("it is first set on line 1"), "{count}");
        assert_eq!(codes(&format!("a: 0\n{keys}")), [""; 0], "{count}");
    }
}

#[test]
fn a_hundred_thousand_repeated_keys_cost_no_more_than_their_length() {
    let same = format!("{{{}}}", "a,".repeat(130_000));
    let told = codes(&same);
    assert_eq!(told.len(), 201);
    assert_eq!(told[200], "more_problems");
    let half: String = (0..60_000).map(|n| format!("{n},")).collect();
    assert_eq!(codes(&format!("{{{half}{half}}}")).len(), 201);
}

#[test]
fn a_long_key_is_shortened_in_paths_and_messages() {
    let text = format!("{}: {{b: 1, b: 2}}\n? {}\n: 1\n", "k".repeat(900), "k".repeat(900));
    let told: String = transcript(&text).lines().skip(1).collect();
    assert!(told.len() < 600, "{told}");
}
