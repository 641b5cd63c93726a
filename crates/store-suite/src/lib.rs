//! The promises of [`Engine`], one function each, run against every engine; and those of [`store::Objects`], in `objects`.
//!
//! An engine's crate calls `run` with a function that returns a new, empty engine. A broken promise panics.

#![allow(clippy::unwrap_used, reason = "these are tests: what is unwrapped is asserted")]

mod closing;
mod concurrency;
mod double;
mod estimates;
mod fixtures;
mod loading;
mod metadata;
pub mod objects;
mod scans;
mod tables;
mod writes;

use std::future::Future;
use std::sync::Arc;

use store::Engine;

pub use double::{EngineDouble, TestEngine};
pub use fixtures::{account, draft, insert, key, number, of_service, scan, table};

type Shared = Arc<dyn Engine>;

pub async fn run<F, Opening>(open: F)
where
    F: Fn() -> Opening,
    Opening: Future<Output = Shared>,
{
    macro_rules! promises {
        ($($promise:path),* $(,)?) => { $(
            let engine = open().await;
            $promise(engine.clone()).await;
            engine.close().await;
        )* };
    }
    promises!(
        tables::a_table_is_found_in_any_case_under_its_first_name,
        tables::accounts_do_not_share_tables,
        tables::tables_are_listed_in_order_and_resumed,
        tables::tables_of_services_are_apart,
        tables::nothing_is_found_in_a_missing_table,
        writes::each_condition_does_what_its_name_says,
        writes::a_merge_overlays_and_a_put_replaces,
        writes::a_merge_stays_within_the_limits,
        writes::a_failing_operation_is_named_and_nothing_is_changed,
        writes::timestamps_only_grow,
        scans::rows_come_in_utf16_order_each_once,
        scans::ranges_read_only_their_rows,
        scans::a_scan_ends_at_its_budget_and_resumes,
        scans::a_filtered_scan_returns_the_rows_that_its_filter_keeps,
        scans::a_page_tells_how_many_rows_it_examined_and_ends_at_its_limit,
        tables::a_dropped_table_leaves_nothing,
        metadata::metadata_belongs_to_its_table_or_account,
        metadata::a_table_can_be_created_with_its_metadata,
        metadata::table_metadata_is_replaced_only_if_it_is_as_expected,
        metadata::a_table_is_dropped_only_if_its_metadata_is_as_expected,
        metadata::of_a_change_and_a_drop_at_once_one_is_refused,
        scans::rows_of_other_services_have_wider_keys,
        metadata::service_metadata_is_replaced_only_if_it_is_as_expected,
        metadata::documents_of_two_services_do_not_disturb_each_other,
        metadata::accounts_with_tables_or_metadata_are_listed,
        loading::loaded_rows_are_read_back_byte_for_byte,
        loading::loading_replaces_and_removes,
        loading::later_timestamps_are_above_loaded_ones,
        loading::a_damaged_row_is_not_loaded,
        concurrency::concurrent_counters_lose_no_step,
        concurrency::readers_never_see_half_a_transaction,
        concurrency::concurrent_inserts_have_one_winner,
        estimates::an_engine_that_tells_counts_a_small_table,
        estimates::an_estimate_reads_no_more_than_it_may,
        closing::a_closed_engine_refuses,
    );
}
