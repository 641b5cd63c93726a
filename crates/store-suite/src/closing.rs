//! An engine that was closed.

use store::FaultKind;

use crate::Shared;
use crate::fixtures::{created, fault_kind, insert, key};

pub async fn a_closed_engine_refuses(engine: Shared) {
    let table = created(&engine, "Books").await;
    assert!(engine.check_health().is_ok());
    engine.close().await;
    assert_eq!(engine.check_health().map_err(|fault| fault.kind()), Err(FaultKind::Busy));
    assert_eq!(fault_kind(engine.apply(&table, insert("p", "r", 1)).await), FaultKind::Busy);
    assert_eq!(fault_kind(engine.get(&table, &key("p", "r")).await), FaultKind::Busy);
    engine.close().await;
}
