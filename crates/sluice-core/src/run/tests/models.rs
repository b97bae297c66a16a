//! The model of a step.

use super::Script;
use crate::run::tests::world::World;
use expect_test::expect;

fn model(step: &'static str) -> impl Fn(&World) -> String {
    move |world| {
        let model = world.run.request(world.at(step)).model;
        format!("{step} is done with {}", model.unwrap_or_else(|| "no model".to_owned()))
    }
}

fn nodes(more: &str) -> Script {
    Script::lens(&format!(
        "{more}\nnodes: [{{id: own, lens_id: l, config: {{model_id: named}}}}, {{id: open, lens_id: l}}]"
    ))
}

#[test]
fn the_step_goes_before_the_caller_the_caller_before_the_document_the_agent_before_the_setting() {
    let shown = |script: Script| {
        let world = script.show(model("own")).show(model("open")).world();
        let lines = world.told.lines().filter(|line| line.contains("is done with"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let document = "default_model: written";
    let asked = |script: Script| script.starting(|it| it.default_model = Some("asked".to_owned()));
    let set = |script: Script| script.starting(|it| it.fallback_model = Some("set".to_owned()));
    let agent = |script: Script| {
        script.under(|desk| desk.agent_row("mock", |row| row.model = Some("agents".to_owned())))
    };
    let told = [
        shown(nodes("")),
        shown(set(nodes(""))),
        shown(agent(set(nodes("")))),
        shown(agent(set(nodes(document)))),
        shown(agent(set(asked(nodes(document))))),
    ];
    expect![[r#"
        own is done with named
        open is done with no model

        own is done with named
        open is done with set

        own is done with named
        open is done with agents

        own is done with named
        open is done with written

        own is done with named
        open is done with asked"#]]
    .assert_eq(&told.join("\n\n"));
}
