//! Something between a store and its server that can fail as a network does.
//!
//! INVARIANT: what is sent through an open and moving proxy arrives in its order
//! and whole; what is held arrives later or, where the connection is cut, never.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Bytes that are passed on at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Most connections at once. One more is refused.
const CONNECTIONS_MAX: usize = 256;

/// A port on the loopback device that leads to another one. Ends when dropped, and
/// every connection with it.
pub struct Proxy {
    port: u16,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

/// What decides whether bytes pass.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    weather: Weather,
    /// Both ends of each connection, by its number.
    open: Vec<(u64, [TcpStream; 2])>,
    number: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Weather {
    #[default]
    Fair,
    Stalled,
    Parted,
    Ended,
}

impl Proxy {
    /// Starts one that leads to a port of this machine.
    pub fn start(to: u16) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let gate = Arc::new(Gate::default());
        let accepting = Arc::clone(&gate);
        let thread = std::thread::Builder::new().name("proxy".to_owned());
        let thread = thread.spawn(move || accept(&listener, to, &accepting))?;
        Ok(Proxy { port, gate, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection. New ones are welcome. Answers how many there were.
    pub fn cut(&self) -> usize {
        self.gate.cut(&mut self.gate.state())
    }

    /// Holds everything that is sent from now on, in both directions. Connections
    /// can be made, and then hear nothing.
    pub fn stall(&self) {
        self.gate.turn(Weather::Stalled);
    }

    /// Cuts every connection, and refuses new ones.
    pub fn part(&self) {
        self.gate.turn(Weather::Parted);
        self.cut();
    }

    /// Ends a stall, with what was held, or a parting.
    pub fn go_on(&self) {
        self.gate.turn(Weather::Fair);
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.gate.state().open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gate.turn(Weather::Ended);
        self.cut();
        // It waits for somebody to come.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    fn turn(&self, weather: Weather) {
        self.state().weather = weather;
        self.moved.notify_all();
    }

    fn cut(&self, state: &mut State) -> usize {
        let cut = std::mem::take(&mut state.open);
        for end in cut.iter().flat_map(|(_, ends)| ends) {
            // One that has gone already is as good.
            let _ = end.shutdown(Shutdown::Both);
        }
        self.moved.notify_all();
        cut.len()
    }

    /// Waits until bytes of a connection may pass. False once it was cut.
    fn pass(&self, number: u64) -> bool {
        let mut state = self.state();
        while state.weather == Weather::Stalled && state.is_open(number) {
            state = self.moved.wait(state).expect("nobody panics while holding it");
        }
        state.is_open(number)
    }

    fn close(&self, number: u64) {
        let mut state = self.state();
        let place = state.open.iter().position(|(open, _)| *open == number);
        if let Some((_, ends)) = place.map(|place| state.open.swap_remove(place)) {
            for end in ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
        self.moved.notify_all();
    }
}

impl State {
    fn is_open(&self, number: u64) -> bool {
        self.open.iter().any(|(open, _)| *open == number)
    }
}

fn accept(listener: &TcpListener, to: u16, gate: &Arc<Gate>) {
    loop {
        let Ok((near, _)) = listener.accept() else { continue };
        let weather = gate.state().weather;
        match weather {
            Weather::Ended => return,
            Weather::Parted => {}
            // Whoever finds no server behind it is cut.
            Weather::Fair | Weather::Stalled => drop(join(near, to, gate)),
        }
    }
}

/// Joins a connection to one behind the proxy, with a thread for each direction.
fn join(near: TcpStream, to: u16, gate: &Arc<Gate>) -> std::io::Result<()> {
    let far = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, to)))?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ways = [(near.try_clone()?, far.try_clone()?), (far.try_clone()?, near.try_clone()?)];
    let mut state = gate.state();
    // It may have been cut meanwhile, with all others.
    if state.open.len() >= CONNECTIONS_MAX || matches!(state.weather, Weather::Parted) {
        return Ok(());
    }
    state.number += 1;
    let number = state.number;
    state.open.push((number, [near, far]));
    drop(state);
    for (from, to) in ways {
        let gate = Arc::clone(gate);
        let way = std::thread::Builder::new().name("proxy-way".to_owned());
        way.spawn(move || carry(from, to, number, &gate))?;
    }
    Ok(())
}

/// Passes bytes on until either end has gone.
fn carry(mut from: TcpStream, mut to: TcpStream, number: u64, gate: &Gate) {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let held = match from.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(held) => held,
        };
        if !gate.pass(number) || to.write_all(&chunk[..held]).is_err() {
            break;
        }
    }
    gate.close(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A server that sends back what it hears.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(8) {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut back = stream.try_clone().unwrap();
                    let _ = std::io::copy(&mut stream, &mut back);
                });
            }
        });
        port
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream
    }

    fn heard(stream: &mut TcpStream) -> Option<u8> {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            _ => None,
        }
    }

    #[test]
    fn bytes_pass_are_held_and_are_lost() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut stream = connect(&proxy);
        stream.write_all(&[1]).unwrap();
        assert_eq!((heard(&mut stream), proxy.connections()), (Some(1), 1));
        proxy.stall();
        stream.write_all(&[2]).unwrap();
        assert_eq!(heard(&mut stream), None);
        proxy.go_on();
        assert_eq!(heard(&mut stream), Some(2));
        proxy.stall();
        stream.write_all(&[3]).unwrap();
        assert_eq!(heard(&mut stream), None);
        assert_eq!((proxy.cut(), proxy.connections()), (1, 0));
        proxy.go_on();
        assert_eq!(heard(&mut stream), None, "what was held went with the connection");
        let mut stream = connect(&proxy);
        stream.write_all(&[4]).unwrap();
        assert_eq!(heard(&mut stream), Some(4));
        proxy.part();
        assert_eq!((heard(&mut connect(&proxy)), proxy.connections()), (None, 0));
        proxy.go_on();
        let mut stream = connect(&proxy);
        stream.write_all(&[5]).unwrap();
        assert_eq!(heard(&mut stream), Some(5));
        let port = proxy.port();
        drop(proxy);
        assert_eq!(heard(&mut stream), None);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err(), "nobody listens");
    }
}
