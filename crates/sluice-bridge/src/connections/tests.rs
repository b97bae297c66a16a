use super::*;
use std::net::Ipv4Addr;

const MINUTE: Duration = Duration::from_secs(60);

fn from(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

fn connections(all: usize, organisation: usize, token: usize) -> Arc<Connections> {
    of_address(all, organisation, token, all)
}

fn of_address(all: usize, organisation: usize, token: usize, address: usize) -> Arc<Connections> {
    let grace = Duration::ZERO;
    Arc::new(Connections::new(ConnectionLimits { all, organisation, token, address, grace }))
}

fn admit(connections: &Arc<Connections>, last: u8) -> Admitted {
    connections.try_admit(from(last)).expect("there is room")
}

fn is_closed(admitted: &Admitted) -> bool {
    admitted.connection().closed.is_cancelled()
}

#[test]
fn the_oldest_idle_anonymous_connection_makes_room_first() {
    let all = connections(10, 10, 10);
    let user = admit(&all, 1);
    assert!(all.sign_in(user.connection(), "acme", "tok_1"));
    let anonymous: Vec<Admitted> = (0..9).map(|_| admit(&all, 1)).collect();
    let working = anonymous[0].connection().begin();
    let next = admit(&all, 1);
    assert!(!is_closed(&user) && !is_closed(&anonymous[0]) && is_closed(&anonymous[1]));
    drop(working);
    let _last = admit(&all, 1);
    assert!(is_closed(&anonymous[0]) && !is_closed(&next));
    assert_eq!((all.count(), all.displaced()), ((9, 1), 2));
}

#[test]
fn the_address_with_the_most_anonymous_connections_loses_one_first() {
    let all = connections(4, 4, 4);
    let alone = admit(&all, 1);
    let many: Vec<Admitted> = (0..3).map(|_| admit(&all, 2)).collect();
    let _next = admit(&all, 3);
    assert!(!is_closed(&alone) && is_closed(&many[0]));
}

#[test]
fn a_connection_that_is_new_has_time_to_send_its_request() {
    let limits = ConnectionLimits { all: 1, organisation: 1, token: 1, address: 1, grace: MINUTE };
    let all = Arc::new(Connections::new(limits));
    let new = admit(&all, 1);
    assert!(all.try_admit(from(1)).is_none());
    assert!(all.make_room(), "without a file handle nothing else helps");
    assert!(is_closed(&new) && all.try_admit(from(1)).is_some());
}

#[test]
fn a_signed_in_connection_is_kept_while_an_anonymous_one_can_soon_be_closed() {
    let limits = ConnectionLimits { all: 2, organisation: 2, token: 2, address: 2, grace: MINUTE };
    let all = Arc::new(Connections::new(limits));
    let (user, stranger) = (admit(&all, 1), admit(&all, 1));
    assert!(all.sign_in(user.connection(), "acme", "tok_1"));
    assert!(all.try_admit(from(1)).is_none());
    let _working = stranger.connection().begin();
    assert!(all.try_admit(from(1)).is_some() && is_closed(&user));
}

#[test]
fn nothing_is_closed_while_every_connection_works() {
    let all = connections(2, 2, 2);
    let both = [admit(&all, 1), admit(&all, 1)];
    let _working: Vec<RequestInFlight> = both.iter().map(|one| one.connection().begin()).collect();
    assert!(all.try_admit(from(1)).is_none());
    assert!(!all.make_room());
}

#[test]
fn a_token_beyond_its_share_loses_its_own_idle_connection_or_is_refused() {
    let all = connections(100, 50, 2);
    let open: Vec<Admitted> = (0..4).map(|_| admit(&all, 1)).collect();
    assert!(all.sign_in(open[0].connection(), "acme", "tok_1"));
    assert!(all.sign_in(open[1].connection(), "acme", "tok_1"));
    assert!(all.sign_in(open[2].connection(), "acme", "tok_1"));
    assert!(is_closed(&open[0]) && !is_closed(&open[1]));
    let _working: Vec<RequestInFlight> =
        open[1..3].iter().map(|one| one.connection().begin()).collect();
    assert!(!all.sign_in(open[3].connection(), "acme", "tok_1"));
    assert!(all.sign_in(open[3].connection(), "acme", "tok_2"), "another token is not refused");
}

#[test]
fn organisations_and_signed_in_users_leave_a_reserve() {
    let all = connections(20, 3, 3);
    let open: Vec<Admitted> = (0..20).map(|_| admit(&all, 1)).collect();
    let working: Vec<RequestInFlight> = open.iter().map(|one| one.connection().begin()).collect();
    for (at, one) in open.iter().enumerate() {
        let signed = all.sign_in(one.connection(), &format!("o{}", at / 4), &format!("t{at}"));
        assert_eq!(signed, at % 4 < 3, "{at}");
    }
    drop((open, working));
    assert_eq!(all.count(), (0, 0));
    let open: Vec<Admitted> = (0..20).map(|_| admit(&all, 1)).collect();
    let _working: Vec<RequestInFlight> = open.iter().map(|one| one.connection().begin()).collect();
    let signed = open
        .iter()
        .enumerate()
        .filter(|(at, one)| all.sign_in(one.connection(), &format!("o{at}"), "t"));
    assert_eq!(signed.count(), 18, "a tenth is kept");
}

#[tokio::test]
async fn a_new_connection_waits_until_one_ends_or_stops_working() {
    let all = connections(1, 1, 1);
    let first = admit(&all, 1);
    let working = first.connection().begin();
    let waiting = tokio::spawn({
        let all = Arc::clone(&all);
        async move { all.admit(from(1)).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(working);
    let _second = waiting.await.expect("it does not panic");
    assert!(is_closed(&first));
}

#[test]
fn an_address_holds_no_more_than_its_share_of_idle_connections() {
    let all = of_address(100, 100, 100, 3);
    let user = admit(&all, 1);
    assert!(all.sign_in(user.connection(), "acme", "tok_1"));
    let many: Vec<Admitted> = (0..5).map(|_| admit(&all, 1)).collect();
    let closed: Vec<bool> = many.iter().map(is_closed).collect();
    assert_eq!(closed, [true, true, false, false, false]);
    assert!(!is_closed(&user), "a signed-in connection is not one of them");
    // Requests in flight are bounded by their number, not by the address.
    let _working: Vec<RequestInFlight> =
        many[2..].iter().map(|one| one.connection().begin()).collect();
    let more = admit(&all, 1);
    assert!(!many[2..].iter().chain([&more]).any(is_closed));
    let _other = admit(&all, 2);
    assert_eq!((all.count(), all.displaced()), ((5, 1), 2));
}
