//! Any text as a template: parsed or rejected, and inserted values stay data.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sluice_core::scope::names::Names;
use sluice_core::template::Template;
use sluice_core::template::lens::LensTemplate;
use std::collections::BTreeMap;

fuzz_target!(|source: &str| {
    let hostile = "${x} [[x]] {{x}} \"; rm -rf $(x) `x`";
    if source.contains("rm -rf") {
        return; // The checks below tell values from the template's own text by this.
    }
    if let Ok(template) = Template::parse(source) {
        let scope = Names::new().with_variable("x", json!(hostile)).with_skipped_step("s");
        if let Ok(rendered) = template.render(&scope) {
            let expected = template
                .references()
                .filter(|one| one.path.head() == "x" && one.path.rest().is_empty());
            assert!(rendered.matches(hostile).count() >= expected.count());
        }
        if let Ok(command) = template.shell() {
            assert!(!command.script.contains(hostile), "a value never becomes part of the script");
            let _ = command.render_env(&scope);
        }
    }
    if let Ok(template) = LensTemplate::parse(source) {
        let bindings = BTreeMap::from([("x".to_owned(), json!(hostile))]);
        let _ = template.render(&bindings, |_| true, |_| false);
        for placeholder in template.placeholders() {
            assert!(source.get(placeholder.span.range()).is_some());
        }
    }
});
