//! The thread team of a rank. Threads stay for the whole run, each with solvers of its own, and
//! share the units of one task after another.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Spins of a thread before it sleeps: a few microseconds, less than waking takes.
const SPINS: usize = 4096;

/// The present task.
struct QueuedTask<T> {
    task: Option<T>,
    units: usize,
    over: bool,
}

/// The task queue of a team, one task at a time.
struct TaskQueue<T> {
    queued: Mutex<QueuedTask<T>>,
    ordered: Condvar,
    /// The number of tasks so far.
    generation: AtomicU64,
    /// The next unit to take.
    next: AtomicUsize,
    /// The number of threads that are busy.
    busy: AtomicUsize,
    finished: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The threads of a rank, this one included.
pub(crate) struct Team<'m, T, W> {
    queue: &'m TaskQueue<T>,
    work: &'m (dyn Fn(T, usize, &mut W) + Sync),
    others: usize,
    /// The context of the first thread.
    own: W,
}

/// Runs `body` with a team of `threads`. Each thread makes a `W` with `make` and keeps it;
/// `work(task, unit, w)` runs one unit of a task.
pub(crate) fn with_team<T: Copy + Send, W, R>(
    threads: usize,
    make: impl Fn() -> W + Sync,
    work: impl Fn(T, usize, &mut W) + Sync,
    body: impl FnOnce(&mut Team<'_, T, W>) -> R,
) -> R {
    let queue = TaskQueue {
        queued: Mutex::new(QueuedTask {
            task: None,
            units: 0,
            over: false,
        }),
        ordered: Condvar::new(),
        generation: AtomicU64::new(0),
        next: AtomicUsize::new(0),
        busy: AtomicUsize::new(0),
        finished: Condvar::new(),
        panic: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        // Ends the other threads however this one leaves.
        let _home = ShutdownGuard(&queue);
        for _ in 1..threads {
            scope.spawn(|| serve(&queue, &make, &work));
        }
        body(&mut Team {
            queue: &queue,
            work: &work,
            others: threads - 1,
            own: make(),
        })
    })
}

struct ShutdownGuard<'m, T>(&'m TaskQueue<T>);

impl<T> Drop for ShutdownGuard<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.queued).over = true;
        // Pairs with the acquiring loads in `wait_for_task`.
        self.0.generation.fetch_add(1, Ordering::Release);
        self.0.ordered.notify_all();
    }
}

impl<T: Copy + Send, W> Team<'_, T, W> {
    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.others + 1
    }

    /// Runs all units of a task; returns when the last is done.
    pub(crate) fn run(&mut self, task: T, units: usize) {
        let queue = self.queue;
        let helpers = self.others.min(units.saturating_sub(1));
        if helpers > 0 {
            queue.next.store(0, Ordering::Relaxed);
            queue.busy.store(self.others, Ordering::Relaxed);
            let mut queued = lock(&queue.queued);
            (queued.task, queued.units) = (Some(task), units);
            // Publishes the two stores above to the loads in `wait_for_task`.
            queue.generation.fetch_add(1, Ordering::Release);
            drop(queued);
            queue.ordered.notify_all();
            let mine = catch_unwind(AssertUnwindSafe(|| self.take_units(task, units)));
            self.wait_for_others();
            if let Err(panic) = mine {
                resume_unwind(panic);
            }
            if let Some(panic) = lock(&queue.panic).take() {
                resume_unwind(panic);
            }
        } else {
            for unit in 0..units {
                (self.work)(task, unit, &mut self.own);
            }
        }
    }

    fn take_units(&mut self, task: T, units: usize) {
        loop {
            let unit = self.queue.next.fetch_add(1, Ordering::Relaxed);
            if unit >= units {
                return;
            }
            (self.work)(task, unit, &mut self.own);
        }
    }

    fn wait_for_others(&self) {
        for _ in 0..SPINS {
            // Pairs with the release in `serve`: the writes of the others are visible after it.
            if self.queue.busy.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        let mut queued = lock(&self.queue.queued);
        // As above.
        while self.queue.busy.load(Ordering::Acquire) > 0 {
            let woken = self.queue.finished.wait(queued);
            queued = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The loop of every other thread.
fn serve<T: Copy, W>(queue: &TaskQueue<T>, make: impl Fn() -> W, work: &impl Fn(T, usize, &mut W)) {
    let mut solvers = make();
    let mut seen = 0;
    while let Some((task, units)) = wait_for_task(queue, &mut seen) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let unit = queue.next.fetch_add(1, Ordering::Relaxed);
                if unit >= units {
                    return;
                }
                work(task, unit, &mut solvers);
            }
        }));
        if let Err(panic) = done {
            lock(&queue.panic).get_or_insert(panic);
        }
        // Pairs with the acquiring loads in `wait_for_others`.
        if queue.busy.fetch_sub(1, Ordering::Release) == 1 {
            // The lock makes sure that a waiter either has seen the zero or sleeps already.
            drop(lock(&queue.queued));
            queue.finished.notify_one();
        }
    }
}

/// The next task, or `None` when the run is over.
fn wait_for_task<T: Copy>(queue: &TaskQueue<T>, seen: &mut u64) -> Option<(T, usize)> {
    for _ in 0..SPINS {
        // Pairs with the releases in `run` and `ShutdownGuard`.
        if queue.generation.load(Ordering::Acquire) != *seen {
            break;
        }
        std::hint::spin_loop();
    }
    let mut queued = lock(&queue.queued);
    loop {
        // As above.
        let generation = queue.generation.load(Ordering::Acquire);
        if queued.over {
            return None;
        }
        if generation != *seen {
            *seen = generation;
            return queued.task.map(|task| (task, queued.units));
        }
        let woken = queue.ordered.wait(queued);
        queued = woken.unwrap_or_else(PoisonError::into_inner);
    }
}

/// Locks a mutex; [`Team::run`] passes a panic of another thread on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_every_task_is_done_once() {
        for threads in 1..5 {
            let counts: Vec<AtomicUsize> = (0..7).map(|_| AtomicUsize::new(0)).collect();
            let work = |task: usize, unit: usize, (): &mut ()| {
                counts[unit].fetch_add(task, Ordering::Relaxed);
            };
            with_team(
                threads,
                || (),
                work,
                |team| {
                    for task in 1..=1000 {
                        team.run(task, task % 8);
                    }
                },
            );
            for (unit, count) in counts.iter().enumerate() {
                let expected: usize = (1..=1000).filter(|task| task % 8 > unit).sum();
                assert_eq!(count.load(Ordering::Relaxed), expected, "{threads} threads");
            }
        }
    }

    #[test]
    fn a_panic_in_any_thread_reaches_the_caller() {
        let work = |(): (), unit: usize, (): &mut ()| assert!(unit != 3, "unit three");
        let run = || with_team(3, || (), work, |team| team.run((), 8));
        let panic = catch_unwind(run).expect_err("unit 3 panics");
        let text = panic.downcast_ref::<&str>().copied();
        assert_eq!(text, Some("unit three"));
    }
}
