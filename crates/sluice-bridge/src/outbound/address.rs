//! Classifies addresses that must not be called by default.
//!
//! A person who may write a URL could otherwise make the engine call what only its machine can
//! reach: a database on loopback, a neighbour in the same network, the cloud's metadata
//! service.
//!
//! INVARIANT: every address that is not known to be public unicast is closed. An address that
//! embeds another one (mapped, 6to4, Teredo, NAT64, ISATAP) is closed if the embedded one is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedReason {
    /// `0.0.0.0` and its block, `::`.
    Unspecified,
    /// `127.0.0.0/8` and `::1`: this machine.
    Loopback,
    /// A private network.
    Private,
    /// Shared address space of carriers.
    Shared,
    /// `169.254.0.0/16` and `fe80::/10`: the same link only.
    LinkLocal,
    /// A cloud metadata service, which hands out credentials.
    Metadata,
    /// An address of a group, not of a host.
    Multicast,
    /// A range that is reserved for examples.
    Documentation,
    /// A range that is reserved for other uses.
    Reserved,
}

impl ClosedReason {
    /// Whether an allow-list entry with the host's name is enough. Metadata services and
    /// unusual ranges require an address or a network on the list, because the owner of a
    /// DNS zone could point a name to them.
    pub(crate) fn opens_by_name(self) -> bool {
        matches!(self, ClosedReason::Loopback | ClosedReason::Private | ClosedReason::Shared)
    }
}

impl fmt::Display for ClosedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClosedReason::Unspecified => "unspecified",
            ClosedReason::Loopback => "loopback",
            ClosedReason::Private => "private",
            ClosedReason::Shared => "carrier-shared",
            ClosedReason::LinkLocal => "link-local",
            ClosedReason::Metadata => "cloud metadata",
            ClosedReason::Multicast => "multicast",
            ClosedReason::Documentation => "documentation",
            ClosedReason::Reserved => "reserved",
        })
    }
}

/// Why an address is closed; `None` if it is public.
pub(crate) fn closed_reason(address: IpAddr) -> Option<ClosedReason> {
    match address.to_canonical() {
        IpAddr::V4(address) => closed_v4(address),
        IpAddr::V6(address) => closed_v6(address),
    }
}

/// Metadata services that are in no special block, or in a public one.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn closed_v4(address: Ipv4Addr) -> Option<ClosedReason> {
    if METADATA_V4.contains(&address) {
        return Some(ClosedReason::Metadata);
    }
    Some(match address.octets() {
        [0, ..] => ClosedReason::Unspecified,
        [127, ..] => ClosedReason::Loopback,
        [10, ..] | [192, 168, ..] => ClosedReason::Private,
        [172, b, ..] if b & 0xf0 == 16 => ClosedReason::Private,
        [100, b, ..] if b & 0xc0 == 64 => ClosedReason::Shared,
        [169, 254, ..] => ClosedReason::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => ClosedReason::Documentation,
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => ClosedReason::Reserved,
        [224..=239, ..] => ClosedReason::Multicast,
        [240..=255, ..] => ClosedReason::Reserved,
        _ => return None,
    })
}

fn closed_v6(address: Ipv6Addr) -> Option<ClosedReason> {
    if METADATA_V6.contains(&address) {
        return Some(ClosedReason::Metadata);
    }
    if address.is_unspecified() {
        return Some(ClosedReason::Unspecified);
    }
    if address.is_loopback() {
        return Some(ClosedReason::Loopback);
    }
    let part = address.segments();
    let isatap = matches!(part[4], 0 | 0x200) && part[5] == 0x5efe;
    if isatap && let Some(inner) = closed_v4(joined(part[6], part[7])) {
        return Some(inner);
    }
    match part {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => closed_v4(joined(high, low)),
        [0x2002, high, low, ..] => closed_v4(joined(high, low)),
        // Teredo: the relay's address, and the inverted address of the client.
        [0x2001, 0, high, low, .., client_high, client_low] => {
            closed_v4(joined(high, low)).or_else(|| closed_v4(joined(!client_high, !client_low)))
        }
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Some(ClosedReason::Documentation),
        [0x2001, 0..=0x1ff, ..] => Some(ClosedReason::Reserved),
        [0x2000..=0x3fff, ..] => None,
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Some(ClosedReason::Private),
        [0xfe80..=0xfebf, ..] => Some(ClosedReason::LinkLocal),
        [0xff00..=0xffff, ..] => Some(ClosedReason::Multicast),
        // IPv4-compatible: deprecated, but some systems still unwrap it.
        [0, 0, 0, 0, 0, 0, high, low] => {
            Some(closed_v4(joined(high, low)).unwrap_or(ClosedReason::Reserved))
        }
        _ => Some(ClosedReason::Reserved),
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(address: &str) -> Option<ClosedReason> {
        closed_reason(address.parse().expect("it is an address"))
    }

    #[test]
    fn addresses_of_this_machine_and_its_neighbours_are_closed() {
        let cases = [
            ("0.0.0.0", ClosedReason::Unspecified),
            ("0.1.2.3", ClosedReason::Unspecified),
            ("127.0.0.1", ClosedReason::Loopback),
            ("127.255.255.254", ClosedReason::Loopback),
            ("10.0.0.1", ClosedReason::Private),
            ("172.16.0.1", ClosedReason::Private),
            ("172.31.255.255", ClosedReason::Private),
            ("192.168.1.1", ClosedReason::Private),
            ("100.64.0.1", ClosedReason::Shared),
            ("100.127.255.255", ClosedReason::Shared),
            ("169.254.0.1", ClosedReason::LinkLocal),
            ("169.254.169.254", ClosedReason::Metadata),
            ("100.100.100.200", ClosedReason::Metadata),
            ("192.0.0.192", ClosedReason::Metadata),
            ("168.63.129.16", ClosedReason::Metadata),
            ("192.0.0.8", ClosedReason::Reserved),
            ("192.0.2.1", ClosedReason::Documentation),
            ("198.51.100.1", ClosedReason::Documentation),
            ("203.0.113.1", ClosedReason::Documentation),
            ("198.18.0.1", ClosedReason::Reserved),
            ("192.88.99.1", ClosedReason::Reserved),
            ("224.0.0.1", ClosedReason::Multicast),
            ("240.0.0.1", ClosedReason::Reserved),
            ("255.255.255.255", ClosedReason::Reserved),
            ("::", ClosedReason::Unspecified),
            ("::1", ClosedReason::Loopback),
            ("fc00::1", ClosedReason::Private),
            ("fd12:3456::1", ClosedReason::Private),
            ("fec0::1", ClosedReason::Private),
            ("fe80::1", ClosedReason::LinkLocal),
            ("fd00:ec2::254", ClosedReason::Metadata),
            ("fd20:ce::254", ClosedReason::Metadata),
            ("ff02::1", ClosedReason::Multicast),
            ("2001:db8::1", ClosedReason::Documentation),
            ("3fff::1", ClosedReason::Documentation),
            ("2001:2::1", ClosedReason::Reserved),
            ("100::1", ClosedReason::Reserved),
            ("5f00::1", ClosedReason::Reserved),
        ];
        for (address, why) in cases {
            assert_eq!(judged(address), Some(why), "{address}");
        }
    }

    #[test]
    fn an_embedded_address_is_checked_too() {
        let cases = [
            ("::ffff:127.0.0.1", ClosedReason::Loopback),
            ("::ffff:169.254.169.254", ClosedReason::Metadata),
            ("::127.0.0.1", ClosedReason::Loopback),
            ("::10.0.0.1", ClosedReason::Private),
            ("::8.8.8.8", ClosedReason::Reserved),
            ("::ffff:0:127.0.0.1", ClosedReason::Reserved),
            ("64:ff9b::7f00:1", ClosedReason::Loopback),
            ("64:ff9b::a9fe:a9fe", ClosedReason::Metadata),
            ("64:ff9b:1::a00:1", ClosedReason::Reserved),
            ("2002:7f00:1::", ClosedReason::Loopback),
            ("2002:a9fe:a9fe::1", ClosedReason::Metadata),
            ("2002:c0a8:101::1", ClosedReason::Private),
            // Teredo via 65.54.227.120 for 127.0.0.1, and via 10.0.0.1.
            ("2001:0:4136:e378:8000:63bf:80ff:fffe", ClosedReason::Loopback),
            ("2001:0:a00:1:8000:63bf:f7f7:f7f7", ClosedReason::Private),
            ("2606:4700::5efe:10.0.0.1", ClosedReason::Private),
            ("2606:4700::200:5efe:127.0.0.1", ClosedReason::Loopback),
        ];
        for (address, why) in cases {
            assert_eq!(judged(address), Some(why), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_open() {
        let cases = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ];
        for address in cases {
            assert_eq!(judged(address), None, "{address}");
        }
    }
}
