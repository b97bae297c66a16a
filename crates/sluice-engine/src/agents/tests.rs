use super::*;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Capabilities, Execution, Health, Request};

/// An adapter of a provider that does nothing.
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

/// Serves bridges and one provider.
struct TestGateways;

impl Gateways for TestGateways {
    fn speaks_to(&self, row: &Gateway) -> bool {
        row.url.is_some() || row.provider == "anthropic"
    }

    fn adapter(&self, _: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        self.speaks_to(row).then(|| Arc::new(Idle("gateway")) as Arc<dyn Adapter>)
    }
}

fn gateway(provider: &str, url: Option<&str>) -> Gateway {
    Gateway { provider: provider.to_owned(), url: url.map(str::to_owned), ..Gateway::default() }
}

fn provider_of(
    agents: &Agents,
    name: &str,
    provider: &str,
    url: Option<&str>,
) -> Option<&'static str> {
    let row = gateway(provider, url);
    let found = agents.at(name, Some(("g", &row))).map(|adapter| adapter.provider());
    assert_eq!(agents.serves(name, &row), found.is_some(), "{name} at {provider} {url:?}");
    found
}

const URL: Option<&str> = Some("http://bridge.example");

#[test]
fn a_registered_agent_uses_the_adapter_of_its_gateway() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_gateways(Arc::new(TestGateways));
    assert_eq!(provider_of(&agents, "scribe", "anthropic", None), Some("gateway"));
    assert_eq!(provider_of(&agents, "scribe", "echo", URL), Some("gateway"));
    assert_eq!(provider_of(&agents, "scribe", "", URL), Some("gateway"));
    assert_eq!(provider_of(&agents, "scribe", "shell", None), Some("shell"));
    // No adapter serves these.
    assert_eq!(provider_of(&agents, "scribe", "", None), None);
    assert_eq!(provider_of(&agents, "scribe", "claude", None), None);
    assert_eq!(provider_of(&agents, "scribe", "mock", None), None);
}

#[test]
fn an_agent_of_this_process_is_not_sent_to_another_provider() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_gateways(Arc::new(TestGateways));
    assert_eq!(provider_of(&agents, "shell", "", None), Some("shell"));
    assert_eq!(provider_of(&agents, "shell", "shell", None), Some("shell"));
    assert_eq!(provider_of(&agents, "shell", "", URL), Some("gateway"));
    assert_eq!(provider_of(&agents, "shell", "shell", URL), Some("gateway"));
    assert_eq!(provider_of(&agents, "shell", "anthropic", None), None);
    assert_eq!(provider_of(&agents, "shell", "anthropic", URL), None);
}

#[test]
fn a_scripted_adapter_next_to_real_gateways_serves_only_its_own_agent() {
    let agents = Agents::new().with("mock", Arc::new(Idle("mock")));
    let agents = agents.with_gateways(Arc::new(TestGateways));
    assert_eq!(provider_of(&agents, "mock", "", None), Some("mock"));
    assert_eq!(provider_of(&agents, "scribe", "mock", None), Some("mock"));
    assert_eq!(provider_of(&agents, "scribe", "mock", URL), Some("gateway"));
    assert_eq!(provider_of(&agents, "scribe", "anthropic", None), Some("gateway"));
    assert_eq!(provider_of(&agents, "mock", "anthropic", None), None);
    assert_eq!(provider_of(&agents, "scribe", "", None), None);
    assert!(agents.get("unknown").is_none());
}

#[test]
fn a_fallback_replaces_every_gateway_but_no_local_adapter() {
    let agents = Agents::new().with("shell", Arc::new(Idle("shell")));
    let agents = agents.with_fallback(Arc::new(Idle("mock")));
    for (provider, url) in [("", None), ("anthropic", None), ("claude", None), ("echo", URL)] {
        assert_eq!(provider_of(&agents, "scribe", provider, url), Some("mock"));
        assert_eq!(provider_of(&agents, "shell", provider, url), Some("shell"));
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
