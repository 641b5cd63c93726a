//! An engine that was closed.

use store::Error;

use crate::Shared;
use crate::fixtures::{created, insert, key};

pub async fn a_closed_engine_refuses(engine: Shared) {
    let table = created(&engine, "Books").await;
    assert!(engine.check_health().is_ok());
    engine.close().await;
    assert!(engine.check_health().is_err());
    assert!(matches!(engine.apply(&table, insert("p", "r", 1)).await, Err(Error::Fault(_))));
    assert!(matches!(engine.get(&table, &key("p", "r")).await, Err(Error::Fault(_))));
    engine.close().await;
}
