//! The timer that bounds how long a client may take to send the head of a request.
//!
//! hyper makes a deadline for every head and drops it when the head is there. Most heads arrive long before, so registering
//! each deadline with tokio, and removing it again, would be work for nothing. Here the deadlines of a connection share one
//! registered alarm: it goes off at an earlier deadline, and is then set to the current one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

/// Registered with tokio when a deadline is first waited for.
type Alarm = Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>;

/// The timer of one connection. It has at most one deadline at a time.
#[derive(Debug, Default)]
pub struct HeadTimer {
    alarm: Alarm,
}

struct Deadline {
    at: Instant,
    alarm: Alarm,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { at, alarm: self.alarm.clone() })
    }
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let at = tokio::time::Instant::from_std(self.at);
        let mut alarm = self.alarm.lock();
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if alarm.deadline() > at {
            alarm.as_mut().reset(at);
        }
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= at {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_over(deadline: &mut Pin<Box<dyn Sleep>>) -> bool {
        std::future::poll_fn(|context| Poll::Ready(deadline.as_mut().poll(context).is_ready())).await
    }

    const HOUR: Duration = Duration::from_secs(3600);
    const SOON: Duration = Duration::from_millis(2);

    #[tokio::test]
    async fn the_alarm_of_an_earlier_deadline_does_not_end_a_later_one() {
        let timer = HeadTimer::default();
        let mut dropped = timer.sleep(SOON);
        is_over(&mut dropped).await;
        drop(dropped);
        let mut later = timer.sleep(HOUR);
        assert!(!is_over(&mut later).await);
        tokio::time::sleep(2 * SOON).await;
        assert!(!is_over(&mut later).await, "the alarm went off");
    }

    #[tokio::test]
    async fn a_deadline_wakes_whoever_waits_for_it_also_if_a_later_one_came_before() {
        let timer = HeadTimer::default();
        let start = Instant::now();
        assert!(!is_over(&mut timer.sleep(HOUR)).await);
        timer.sleep(SOON).await;
        timer.sleep(SOON).await;
        assert!(start.elapsed() >= 2 * SOON);
    }
}
