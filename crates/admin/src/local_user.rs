//! Which user of this machine is at the other end of a loopback connection, as the system's list of connections says.

use std::net::{IpAddr, SocketAddr};

/// How often the list is read. While connections come and go, it may leave some out.
const LOOKS: usize = 3;

/// Whether the peer of a connection to this listener may be another user of this machine than the one that runs this server, and
/// is not root. False where the system has no such list. Reads the whole list of connections, so it is for rare requests.
pub(crate) fn is_another(peer: SocketAddr, listener: SocketAddr) -> bool {
    let list = |name: &str| std::fs::read_to_string(format!("/proc/self/net/{name}")).ok();
    let own = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| own_user(&status));
    for _ in 0..LOOKS {
        let lists = [list("tcp"), list("tcp6")];
        if lists.iter().all(Option::is_none) {
            return false;
        }
        if let Some(user) = lists.iter().flatten().find_map(|list| user_in(list, peer, listener)) {
            return user != 0 && Some(user) != own;
        }
    }
    // A peer that is not in the list has closed its end, so that nobody can say whose it was.
    true
}

/// The user of the open socket with this address that is connected to the listener. Both count: two programs may have the same
/// port, if they are connected to different places. A socket that its program has closed belongs to nobody, which the system
/// writes as root.
fn user_in(list: &str, address: SocketAddr, listener: SocketAddr) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let (own_forms, remote_forms) = (forms(address), forms(listener));
    list.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (own, remote, state, user) = (fields.get(1)?, fields.get(2)?, fields.get(3)?, fields.get(7)?);
        let is_of = |forms: &[String; 2], field: &str| forms.iter().any(|form| form == field);
        let is_it = *state == ESTABLISHED && is_of(&own_forms, own) && is_of(&remote_forms, remote);
        is_it.then(|| user.parse().ok())?
    })
}

/// An address as the lists of both families have it.
fn forms(address: SocketAddr) -> [String; 2] {
    [written(address.ip()), written(mapped(address.ip()))].map(|ip| format!("{ip}:{:04X}", address.port()))
}

fn mapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(_) => ip.to_canonical(),
    }
}

/// As the system writes it: words of four bytes, each in the machine's order.
fn written(ip: IpAddr) -> String {
    let bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    words.map(|word| format!("{word:08X}")).collect()
}

/// The effective user.
fn own_user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_user_is_that_of_the_peers_own_socket() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:2714 0100007F:AC43 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n\
            \x20  1: 0100007F:AC43 0100007F:2714 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0\n\
            \x20  2: 0000000000000000FFFF00000100007F:0007 0000000000000000FFFF00000100007F:2714 01 0:0 0:0 0  1001 0 3 1 0\n\
            \x20  3: 00000000000000000000000001000000:0008 00000000000000000000000001000000:2714 01 0:0 0:0 0  1002 0 3 1 0\n\
            \x20  4: 0100007F:000A 0100007F:2714 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0\n\
            \x20  5: 0100007F:000B 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0\n\
            \x20  6: 0100007F:000B 0100007F:2714 01 00000000:00000000 00:00000000 00000000  1003        0 5 1 0\n\
            \x20  7: 0100007F:000C 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 6 1 0\n";
        let (v4, v6) = ("127.0.0.1:10004", "[::1]:10004");
        for (address, listener, expected) in [
            ("127.0.0.1:44099", v4, Some(1000)),
            ("127.0.0.1:7", v4, Some(1001)),
            ("[::1]:8", v6, Some(1002)),
            ("127.0.0.1:9", v4, None),
            ("127.0.0.1:10", v4, None),
            // The same port, connected to two places; and to another place only.
            ("127.0.0.1:11", v4, Some(1003)),
            ("127.0.0.1:12", v4, None),
        ] {
            let found = user_in(list, address.parse().unwrap(), listener.parse().unwrap());
            assert_eq!(found, expected, "{address}");
        }
        assert_eq!(own_user("Name:\tx\nUid:\t5\t6\t7\t8\n"), Some(6));
    }

    #[test]
    fn this_process_is_no_other_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(at).unwrap();
        let address = client.local_addr().unwrap();
        assert!(!is_another(address, at));
        drop(client);
        assert!(is_another(address, at), "it has closed its end");
    }
}
