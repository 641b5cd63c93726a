//! Every history that really happened in some order is accepted.

use histories::judge::{PLACES_MAX, is_linearizable};
use proptest::prelude::*;

use crate::simulator::{Losses, Simulator};

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_history_that_has_an_order_is_accepted(seed: u64, clients in 1..9_usize, rows in 1..7_usize) {
        let mut simulator = Simulator::new(seed, clients, rows);
        simulator.run(300 / clients, Losses::Bounded);
        let history = simulator.finish();
        prop_assert_eq!(is_linearizable(&history, PLACES_MAX), Some(true));
    }

    #[test]
    fn a_history_with_late_writes_is_accepted(seed: u64, clients in 1..7_usize, rows in 1..5_usize) {
        let mut simulator = Simulator::new(seed, clients, rows);
        simulator.run(60 / clients, Losses::Any);
        let history = simulator.finish();
        prop_assert_eq!(is_linearizable(&history, PLACES_MAX), Some(true));
    }
}
