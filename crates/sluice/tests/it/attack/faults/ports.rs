//! Two servers on one host, and pages of other ports.

use super::http::{bearer, send};
use crate::server::Server;
use crate::world::World;

/// The name and the secret of a session's cookie, as a browser keeps them.
fn sign_in(server: &Server) -> (String, String) {
    let head = [bearer(&server.token)];
    let answer = send(server.address(), "POST /api/v1/session", &head, "");
    assert_eq!(answer.status, 201, "{}", answer.text);
    let line = answer.text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let pair = line.split(';').next().unwrap();
    let (name, secret) = pair.split_once('=').unwrap();
    (name.to_owned(), secret.to_owned())
}

#[test]
fn a_second_server_on_the_host_does_not_overwrite_a_sign_in() {
    let world = || World::new().file("mock.yaml", "'*': {text: Done.}\n");
    let (one_world, other_world) = (world(), world());
    let one = Server::start(&one_world, "127.0.0.1:0");
    let other = Server::start(&other_world, "127.0.0.1:0");
    let ((first, first_secret), (second, second_secret)) = (sign_in(&one), sign_in(&other));
    assert_ne!(first, second, "a browser keeps one cookie of a name for all ports");
    let cookies = format!("cookie: {first}={first_secret}; {second}={second_secret}");
    for server in [&one, &other] {
        let head = [cookies.clone()];
        let answer = send(server.address(), "GET /api/v1/session", &head, "");
        assert_eq!(answer.status, 200, "{}", answer.text);
        // A page of the other port is of the same site.
        let head = [cookies.clone(), "sec-fetch-site: same-site".to_owned()];
        let answer = send(server.address(), "GET /api/v1/session", &head, "");
        assert_eq!(answer.status, 403, "{}", answer.text);
    }
}
