//! What a protocol version changes for queues (spec: queue-operations 9).

use common::Version;

const SERVICE_ENDPOINT: &str = "2013-08-15";
const PUT_ANSWER: &str = "2016-05-31";
const ANY_TIME_TO_LIVE: &str = "2017-07-29";
const ERROR_CODE_HEADER: &str = "2017-07-29";
const POLICIES_FOR_BEARERS: &str = "2025-07-05";

/// The questions that only the Queue service asks of a version.
pub trait QueueVersion {
    /// A list of queues names the address of its account, and not that of each queue.
    fn lists_service_endpoint(self) -> bool;
    /// Put Message answers with the message, and Get Messages shows the dequeue count behind the times.
    fn has_put_answer(self) -> bool;
    /// A message may live longer than seven days, and for ever.
    fn has_any_time_to_live(self) -> bool;
    /// Every error says its code in a header too.
    fn has_error_code_header(self) -> bool;
    /// Bearer tokens may read and set stored access policies.
    fn shows_policies_to_bearers(self) -> bool;
}

// Dates in this notation sort as text.
impl QueueVersion for Version {
    fn lists_service_endpoint(self) -> bool {
        self.as_str() >= SERVICE_ENDPOINT
    }

    fn has_put_answer(self) -> bool {
        self.as_str() >= PUT_ANSWER
    }

    fn has_any_time_to_live(self) -> bool {
        self.as_str() >= ANY_TIME_TO_LIVE
    }

    fn has_error_code_header(self) -> bool {
        self.as_str() >= ERROR_CODE_HEADER
    }

    fn shows_policies_to_bearers(self) -> bool {
        self.as_str() >= POLICIES_FOR_BEARERS
    }
}
