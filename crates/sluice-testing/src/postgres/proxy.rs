//! A proxy between a store and its server that can fail like a network.
//!
//! INVARIANT: an open, moving proxy delivers bytes in order and complete. Stalled bytes
//! arrive later or, if the connection is cut, never.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Bytes forwarded at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Largest number of connections; further ones are refused.
const CONNECTIONS_MAX: usize = 256;

/// A loopback port that forwards to another one. Dropping it closes every connection.
pub struct Proxy {
    port: u16,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

/// Controls whether bytes pass.
#[derive(Default)]
struct Gate {
    state: Mutex<ProxyState>,
    moved: Condvar,
}

#[derive(Default)]
struct ProxyState {
    mode: ProxyMode,
    /// Both ends of each connection, by its number.
    open: Vec<(u64, [TcpStream; 2])>,
    number: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum ProxyMode {
    #[default]
    Forwarding,
    Stalled,
    Partitioned,
    Stopped,
}

impl Proxy {
    /// Starts a proxy to a local port.
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

    /// Cuts every connection, and accepts new ones. Returns how many there were.
    pub fn cut(&self) -> usize {
        self.gate.cut(&mut self.gate.state())
    }

    /// Holds all bytes from now on, in both directions. New connections are accepted
    /// but receive nothing.
    pub fn stall(&self) {
        self.gate.set_mode(ProxyMode::Stalled);
    }

    /// Cuts every connection, and refuses new ones.
    pub fn part(&self) {
        self.gate.set_mode(ProxyMode::Partitioned);
        self.cut();
    }

    /// Ends a stall, delivering the held bytes, or a partition.
    pub fn go_on(&self) {
        self.gate.set_mode(ProxyMode::Forwarding);
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.gate.state().open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gate.set_mode(ProxyMode::Stopped);
        self.cut();
        // Wakes the thread, which blocks in `accept`.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn set_mode(&self, mode: ProxyMode) {
        self.state().mode = mode;
        self.moved.notify_all();
    }

    fn cut(&self, state: &mut ProxyState) -> usize {
        let cut = std::mem::take(&mut state.open);
        for end in cut.iter().flat_map(|(_, ends)| ends) {
            // A connection that is already closed is fine.
            let _ = end.shutdown(Shutdown::Both);
        }
        self.moved.notify_all();
        cut.len()
    }

    /// Waits until bytes of a connection may pass. Returns false if it was cut.
    fn pass(&self, number: u64) -> bool {
        let mut state = self.state();
        while state.mode == ProxyMode::Stalled && state.is_open(number) {
            state = self.moved.wait(state).expect("no thread panics while it holds the lock");
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

impl ProxyState {
    fn is_open(&self, number: u64) -> bool {
        self.open.iter().any(|(open, _)| *open == number)
    }
}

fn accept(listener: &TcpListener, to: u16, gate: &Arc<Gate>) {
    loop {
        let Ok((near, _)) = listener.accept() else { continue };
        let mode = gate.state().mode;
        match mode {
            ProxyMode::Stopped => return,
            ProxyMode::Partitioned => {}
            // If there is no server behind the proxy, the connection is dropped.
            ProxyMode::Forwarding | ProxyMode::Stalled => drop(join(near, to, gate)),
        }
    }
}

/// Connects to the server, with a thread for each direction.
fn join(near: TcpStream, to: u16, gate: &Arc<Gate>) -> std::io::Result<()> {
    let far = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, to)))?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let directions = [(near.try_clone()?, far.try_clone()?), (far.try_clone()?, near.try_clone()?)];
    let mut state = gate.state();
    // The proxy may have been partitioned meanwhile.
    if state.open.len() >= CONNECTIONS_MAX || matches!(state.mode, ProxyMode::Partitioned) {
        return Ok(());
    }
    state.number += 1;
    let number = state.number;
    state.open.push((number, [near, far]));
    drop(state);
    for (from, to) in directions {
        let gate = Arc::clone(gate);
        let direction = std::thread::Builder::new().name("proxy-direction".to_owned());
        direction.spawn(move || carry(from, to, number, &gate))?;
    }
    Ok(())
}

/// Forwards bytes until either end is closed.
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

    /// A server that echoes its input.
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
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err(), "the port is closed");
    }
}
