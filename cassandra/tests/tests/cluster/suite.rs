//! The promises that every engine keeps, kept on a cluster.

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

/// A keyspace takes seconds to make, so one is used again for every promise.
async fn empty(engine: &dyn Engine, session: &Session) {
    for account in ["devstoreaccount1", "another"] {
        // What the service keeps of an account is never removed by the engine itself.
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
