//! What the log folds, what it writes, and what becomes of lines that nobody reads.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::daemon::fake;

const WINDOW: Duration = Duration::from_secs(60);

fn told(folded: &[fold::Folded]) -> Vec<u64> {
    folded.iter().map(|folded| folded.count).collect()
}

#[test]
fn the_first_is_told_at_once_and_the_like_of_it_once_a_window() {
    let mut fold = Fold::new(WINDOW);
    let start = Instant::now();
    let event = Arc::new(fake::event("trainer"));
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(told(&fold.add(start, &event)), [1]);
    assert_eq!(told(&fold.add(at(1), &event)), [0; 0]);
    assert_eq!(told(&fold.add(at(59), &event)), [0; 0]);
    let folded = fold.due(at(60));
    assert_eq!(told(&folded), [2]);
    assert_eq!(folded[0].window, Some(WINDOW));
    // The next window goes on folding, and ends with nothing to tell.
    assert_eq!(told(&fold.add(at(61), &event)), [0; 0]);
    assert_eq!(told(&fold.due(at(120))), [1]);
    assert_eq!(told(&fold.due(at(180))), [0; 0]);
    assert_eq!(told(&fold.add(at(181), &event)), [1], "forgotten, so told at once again");
    assert_eq!(told(&fold.drain()), [0; 0]);
}

#[test]
fn what_differs_is_not_folded() {
    let mut fold = Fold::new(WINDOW);
    let start = Instant::now();
    let one = fake::failure("trainer");
    let change: [fn(&mut crate::event::Failure); 7] = [
        |failure| failure.device = Some("mlx5_1".into()),
        |failure| failure.verb = "dereg_mr".into(),
        |failure| failure.errno = libc::EINVAL,
        |failure| failure.answer.function = "mlx5_ib_reg_user_mr".into(),
        |failure| failure.comm = "other".into(),
        |failure| failure.uid = 0,
        |failure| failure.cgroup_id = 1,
    ];
    assert_eq!(fold.add(start, &Arc::new(Event::Verbs(Box::new(one.clone())))).len(), 1);
    for change in change {
        let mut other = one.clone();
        change(&mut other);
        assert_eq!(fold.add(start, &Arc::new(Event::Verbs(Box::new(other)))).len(), 1);
    }
    let mut same = one;
    (same.pid, same.tid, same.duration_ns) = (1, 2, None);
    assert_eq!(fold.add(start, &Arc::new(Event::Verbs(Box::new(same)))).len(), 0);
}

#[test]
fn a_full_table_loses_no_count() {
    let mut fold = Fold::new(WINDOW);
    let start = Instant::now();
    let mut written = 0;
    let added = limits::LOG_SIGNATURES as u64 + 10;
    for index in 0..added {
        let event = Arc::new(fake::event(&format!("p{index}")));
        for _ in 0..3 {
            written += told(&fold.add(start, &event)).iter().sum::<u64>();
        }
    }
    assert_eq!(fold.evicted(), 10);
    written += told(&fold.drain()).iter().sum::<u64>();
    assert_eq!(written, added * 3);
}

/// Lines as they are written, until nobody reads any more.
#[derive(Clone, Debug, Default)]
struct Reader(Arc<Mutex<(String, bool)>>);

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        if state.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        state.0.push_str(std::str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_is_json_with_the_events_keys() {
    let reader = Reader::default();
    let mut log = Log::new(WINDOW, &fake::info(), reader.clone()).unwrap();
    let mut failure = fake::failure("a\"b\n");
    failure.device = None;
    log.failure(Instant::now(), &Arc::new(Event::Verbs(Box::new(failure))));
    log.close();
    let text = reader.0.lock().unwrap().0.clone();
    assert_eq!(text.lines().count(), 1);
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The event's own keys are tested where they are made.
    let expected: [(&str, serde_json::Value); 4] =
        [("count", 1.into()), ("verb", "reg_mr".into()), ("comm", "a\"b\n".into()), ("host", "gpu-17".into())];
    for (key, value) in expected {
        assert_eq!(line[key], value, "{key} in {text}");
    }
    assert!(line.get("window_seconds").is_none() && line.get("device").is_none(), "{text}");
}

#[test]
fn lines_that_nobody_reads_are_counted() {
    let reader = Reader::default();
    reader.0.lock().unwrap().1 = true;
    let mut log = Log::new(WINDOW, &fake::info(), reader).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut index = 0u64;
    while log.lost() == 0 {
        assert!(Instant::now() < end, "no line was lost");
        index += 1;
        log.failure(Instant::now(), &Arc::new(fake::event(&format!("p{index}"))));
    }
    log.close();
}
