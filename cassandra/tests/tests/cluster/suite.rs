//! The engine keeps the promises of every engine on a cluster.

use std::sync::Arc;

use cluster_tests::{drop_keyspace, fresh_keyspace, nodes, open};
use engine_cassandra::connect;
use model::ServiceKind;
use scylla::client::session::Session;
use store::Engine;

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_promise() {
    let Some(nodes) = nodes() else { return };
    let options = fresh_keyspace(&nodes).await;
    let session = connect(&options).await.unwrap();
    session.use_keyspace(&options.keyspace, true).await.unwrap();
    store_suite::run(|| async {
        let engine = open(&options).await;
        empty(&*engine, &session).await;
        engine as Arc<dyn Engine>
    })
    .await;
    drop_keyspace(&options).await;
}

/// Empties the keyspace for the next promise: creating a new one would take seconds.
async fn empty(engine: &dyn Engine, session: &Session) {
    for account in ["devstoreaccount1", "another"] {
        // The engine itself never removes the documents of an account.
        session.query_unpaged("DELETE FROM services WHERE account = ?", (account,)).await.unwrap();
        let account = store_suite::account(account);
        for service in ServiceKind::ALL {
            for name in engine.list_tables(&account, service, "", 1000).await.unwrap().names {
                let table = store::TableRef { account: account.clone(), service, name };
                engine.drop_table(&table).await.unwrap();
            }
        }
    }
}
