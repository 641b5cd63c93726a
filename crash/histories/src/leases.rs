//! Who held a lease, and whether that is possible: a lease is held by one.
//!
//! A client that was given a lease holds it for certain from then on, until it gives it back or its time is over; and the time
//! counts from the moment at which it asked.

use crate::history::Time;

/// What a client knows for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// It held the lease all that time.
    Held { client: u32, from: Time, until: Time },
    /// It wrote without the lease, at some time in between, and that was acknowledged.
    Trespassed { client: u32, from: Time, until: Time },
    /// It wrote with the lease that it held, and was refused.
    Denied { client: u32, at: Time, status: u16 },
}

/// What of this can't be.
pub fn judge(events: &[LeaseEvent]) -> Result<(), String> {
    let mut holds: Vec<(Time, Time, u32)> = Vec::new();
    for event in events {
        match event {
            LeaseEvent::Held { client, from, until } => holds.push((*from, *until, *client)),
            LeaseEvent::Denied { client, at, status } => {
                return Err(format!("client {client} held the lease at {at} and was refused with {status}"));
            }
            LeaseEvent::Trespassed { .. } => {}
        }
    }
    holds.sort_unstable();
    for pair in holds.windows(2) {
        let [(_, until, one), (from, _, other)] = pair else { continue };
        if from < until {
            return Err(format!("clients {one} and {other} both held the lease between {from} and {until}"));
        }
    }
    for event in events {
        let LeaseEvent::Trespassed { client, from, until } = event else { continue };
        if let Some((held_from, held_until, holder)) =
            holds.iter().find(|(held_from, held_until, _)| held_from < from && until < held_until)
        {
            return Err(format!(
                "client {client} wrote without the lease between {from} and {until}, while client {holder} held it from \
                 {held_from} to {held_until}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_held_by_one() {
        let held = |client, from, until| LeaseEvent::Held { client, from, until };
        let trespassed = |from, until| LeaseEvent::Trespassed { client: 9, from, until };
        assert_eq!(judge(&[held(1, 10, 20), held(2, 20, 30), held(1, 5, 9)]), Ok(()));
        assert!(
            judge(&[held(2, 19, 30), held(1, 10, 20)]).unwrap_err().contains("clients 1 and 2 both held")
        );
        assert_eq!(
            judge(&[held(1, 10, 20), trespassed(5, 15), trespassed(15, 25), trespassed(21, 22)]),
            Ok(())
        );
        assert!(
            judge(&[held(1, 10, 20), trespassed(11, 19)]).unwrap_err().contains("client 9 wrote without")
        );
        let denied = LeaseEvent::Denied { client: 3, at: 7, status: 412 };
        assert!(
            judge(&[denied]).unwrap_err().contains("client 3 held the lease at 7 and was refused with 412")
        );
    }
}
