//! What a `.lobsterX` document may say, and what it means when it does not.

use super::Script;
use expect_test::expect;

#[test]
fn the_smallest_document() {
    Script::lobsterx(
        r"
        name: tiny
        steps:
          - id: one
            command: do it
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        one <-
        wave: one
    "#]]);
}

#[test]
fn six_mistakes_are_told_at_once() {
    Script::lobsterx(
        r"
        name: Six Mistakes
        maxparallel: 3
        max_parallel: 0
        steps:
          - id: gather_data
            command: ${nobody.outputs.x}
            timeout: soon
          - id: use_it
            depends_on: [gather]
            phase: none
            command: go
        ",
    )
    .check(expect![[r#"
        1:7 bad_name name: `Six Mistakes` is not in kebab-case: lower-case letters, digits and single dashes, a letter first (write `six-mistakes`)
        2:1 unknown_field maxparallel: unknown field `maxparallel` (did you mean `max_parallel`?)
        3:15 bad_value max_parallel: 0 is not a whole number from 1 to 1024
        ~6:16 unknown_variable steps[0].command: nothing sets `nobody`
        7:14 bad_duration steps[0].timeout: is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
        9:18 unknown_step steps[1].depends_on[0]: there is no step `gather`
        10:12 unknown_phase steps[1].phase: the phase `none` is not declared (declare it under `phases`)
    "#]]);
}

#[test]
fn a_list_of_steps_is_no_lens_document() {
    let lens = Script::lens("name: tiny\nsteps: []\n").transcript();
    assert!(lens.contains("unknown_field steps"), "{lens}");
}
