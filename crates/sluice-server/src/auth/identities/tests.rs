use super::*;

const SECRET: &str = "slk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn token(roles: &[&str]) -> Token {
    Token {
        principal: "ada".to_owned(),
        sha256: hash(SECRET),
        roles: roles.iter().map(ToString::to_string).collect(),
        scopes: None,
        groups: vec!["finance".to_owned()],
        parent: None,
        session: false,
        created_at_ms: 0,
        expires_at_ms: None,
    }
}

fn other(sha: char, parent: Option<&str>, roles: &[&str]) -> Token {
    let sha256 = sha.to_string().repeat(64);
    Token { sha256, parent: parent.map(str::to_owned), ..token(roles) }
}

fn read(tokens: &[(&str, Token)]) -> Identities {
    let rows: Vec<Row> = tokens.iter().map(|(id, token)| row(id, token)).collect();
    Identities::read(1, &rows)
}

fn found(tokens: &[(&str, Token)], now_ms: u64) -> Option<Caller> {
    read(tokens).find(&secret::digest(SECRET).unwrap(), now_ms)
}

#[test]
fn a_token_identifies_the_caller_and_its_roles() {
    let caller = found(&[("tok_1", token(&["approver"]))], 5).unwrap();
    assert_eq!((caller.name.as_str(), caller.token.as_str()), ("ada", "tok_1"));
    assert_eq!(caller.roles, ["approver", "finance"]);
    assert!(caller.may(Permission::GovernanceApprove) && !caller.may(Permission::TokenManage));
}

#[test]
fn an_unknown_secret_is_refused() {
    assert_eq!(found(&[("tok_1", other('a', None, &["admin"]))], 5), None);
}

#[test]
fn a_token_is_valid_until_it_expires() {
    let expiring = Token { expires_at_ms: Some(10), ..token(&["admin"]) };
    assert!(found(&[("tok_1", expiring.clone())], 9).is_some());
    assert_eq!(found(&[("tok_1", expiring)], 10), None);
}

#[test]
fn scopes_and_parents_only_remove_permissions() {
    let scopes = Some(vec!["workflow:read".to_owned(), "token:manage".to_owned()]);
    let child = Token { scopes, parent: Some("tok_0".to_owned()), ..token(&["admin"]) };
    let all = [("tok_0", other('a', None, &["viewer"])), ("tok_1", child)];
    let caller = found(&all, 5).unwrap();
    assert_eq!(caller.permissions.iter().collect::<Vec<_>>(), [Permission::WorkflowRead]);
}

#[test]
fn a_token_is_revoked_with_its_parent() {
    let child = Token { parent: Some("tok_0".to_owned()), ..token(&["viewer"]) };
    assert_eq!(found(&[("tok_1", child.clone())], 5), None);
    let parent = Token { expires_at_ms: Some(3), ..other('a', None, &["admin"]) };
    assert_eq!(found(&[("tok_0", parent), ("tok_1", child)], 5), None);
}

#[test]
fn tokens_with_a_cycle_of_parents_are_refused() {
    let one = Token { parent: Some("tok_2".to_owned()), ..token(&["admin"]) };
    let two = other('b', Some("tok_1"), &["admin"]);
    assert_eq!(found(&[("tok_1", one), ("tok_2", two)], 5), None);
}

#[test]
fn unknown_roles_and_scopes_grant_nothing() {
    let scopes = Some(vec!["everything".to_owned()]);
    let odd = Token { scopes, ..token(&["admin", "root"]) };
    assert!(found(&[("tok_1", odd)], 5).unwrap().permissions.iter().next().is_none());
}
