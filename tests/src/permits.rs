//! How many processors' worth of machines run at once: no more than the host has.

use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A number of permits that are taken several at a time and given back.
#[derive(Debug)]
pub struct Permits {
    free: Mutex<usize>,
    changed: Condvar,
    total: usize,
}

/// Permits taken; dropping it gives them back.
#[derive(Debug)]
pub struct Permit<'a> {
    from: &'a Permits,
    count: usize,
}

impl Permits {
    /// As many permits as this host has processors.
    #[must_use]
    pub fn of_host() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    fn new(total: usize) -> Self {
        Permits { free: Mutex::new(total), changed: Condvar::new(), total }
    }

    /// Waits until `count` permits are free and takes them; more than there are means all of them.
    pub fn take(&self, count: usize) -> Permit<'_> {
        let count = count.min(self.total);
        let mut free = self.free();
        while *free < count {
            free = self.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= count;
        Permit { from: self, count }
    }

    // The number is right even when a test that held a permit failed: it gave it back.
    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.from.free() += self.count;
        self.from.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_come_back_and_too_many_mean_all() {
        let permits = Permits::new(2);
        let one = permits.take(1);
        assert_eq!(*permits.free(), 1);
        drop(one);
        let all = permits.take(16);
        assert_eq!(*permits.free(), 0);
        drop(all);
        assert_eq!(*permits.free(), 2);
    }

    #[test]
    fn a_taker_waits_for_the_one_before() {
        let permits = Permits::new(1);
        let first = permits.take(1);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| permits.take(1).count);
            drop(first);
            assert_eq!(second.join().unwrap(), 1);
        });
    }
}
