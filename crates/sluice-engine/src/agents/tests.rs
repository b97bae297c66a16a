use super::*;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Capabilities, Execution, Health, Request};

/// Does nothing, for a provider.
struct Idle(&'static str);

impl Adapter for Idle {
    fn provider(&self) -> &'static str {
        self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, _: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(std::future::ready(Execution::Done(Box::default())))
    }
}

/// Speaks to bridges, and to one provider.
struct Speaker;

impl Gateways for Speaker {
    fn speaks_to(&self, row: &Gateway) -> bool {
        row.url.is_some() || row.provider == "anthropic"
    }

    fn adapter(&self, _: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        self.speaks_to(row).then(|| Arc::new(Idle("spoken")) as Arc<dyn Adapter>)
    }
}

fn gateway(provider: &str, url: Option<&str>) -> Gateway {
    Gateway { provider: provider.to_owned(), url: url.map(str::to_owned), ..Gateway::default() }
}

fn who(agents: &Agents, name: &str, provider: &str, url: Option<&str>) -> Option<&'static str> {
    let row = gateway(provider, url);
    let found = agents.at(name, Some(("g", &row))).map(|adapter| adapter.provider());
    assert_eq!(agents.serves(name, &row), found.is_some(), "{name} at {provider} {url:?}");
    found
}

const URL: Option<&str> = Some("http://bridge.example");

#[test]
fn a_registered_agent_is_done_by_what_its_gateway_speaks_to() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_gateways(Arc::new(Speaker));
    assert_eq!(who(&agents, "scribe", "anthropic", None), Some("spoken"));
    assert_eq!(who(&agents, "scribe", "echo", URL), Some("spoken"));
    assert_eq!(who(&agents, "scribe", "", URL), Some("spoken"));
    assert_eq!(who(&agents, "scribe", "shell", None), Some("shell"));
    // Nothing stands behind these.
    assert_eq!(who(&agents, "scribe", "", None), None);
    assert_eq!(who(&agents, "scribe", "claude", None), None);
    assert_eq!(who(&agents, "scribe", "mock", None), None);
}

#[test]
fn an_agent_of_this_process_is_not_sent_to_another_provider() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_gateways(Arc::new(Speaker));
    assert_eq!(who(&agents, "shell", "", None), Some("shell"));
    assert_eq!(who(&agents, "shell", "shell", None), Some("shell"));
    assert_eq!(who(&agents, "shell", "", URL), Some("spoken"));
    assert_eq!(who(&agents, "shell", "shell", URL), Some("spoken"));
    assert_eq!(who(&agents, "shell", "anthropic", None), None);
    assert_eq!(who(&agents, "shell", "anthropic", URL), None);
}

#[test]
fn a_script_beside_real_gateways_answers_for_its_own_alone() {
    let agents = Agents::new().with("mock", Arc::new(Idle("mock")));
    let agents = agents.with_gateways(Arc::new(Speaker));
    assert_eq!(who(&agents, "mock", "", None), Some("mock"));
    assert_eq!(who(&agents, "scribe", "mock", None), Some("mock"));
    assert_eq!(who(&agents, "scribe", "mock", URL), Some("spoken"));
    assert_eq!(who(&agents, "scribe", "anthropic", None), Some("spoken"));
    assert_eq!(who(&agents, "mock", "anthropic", None), None);
    assert_eq!(who(&agents, "scribe", "", None), None);
    assert!(agents.get("unknown").is_none());
}

#[test]
fn a_fallback_stands_in_for_every_gateway_but_not_for_agents_of_this_process() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_fallback(Arc::new(Idle("mock")));
    for (provider, url) in [("", None), ("anthropic", None), ("claude", None), ("echo", URL)] {
        assert_eq!(who(&agents, "scribe", provider, url), Some("mock"));
        assert_eq!(who(&agents, "shell", provider, url), Some("shell"));
    }
}

#[test]
fn the_gateway_of_this_process_offers_nothing_unless_a_script_answers() {
    let offers = |agents: &Agents| agents.implied_gateway().capabilities;
    assert!(offers(&Agents::new().with("shell", Arc::new(Idle("shell")))).is_empty());
    let scripted = Agents::new().with("mock", Arc::new(Idle("mock")));
    assert_eq!(offers(&scripted), [ANYTHING]);
    let scripted = Agents::new().with_fallback(Arc::new(Idle("mock")));
    assert_eq!(offers(&scripted), [ANYTHING]);
}
