//! The recorder against a disk that fills up, refuses and comes back; its memory and its files against their budgets.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use analysis::series::{DurationNs, Fields, Measured, Sample, Series, Sketch, Span, Traffic, UtcNs};

use super::disk::{Disk, DiskSettings, Store};
use super::memory::{Form, Memory};
use super::*;
use crate::bursts::file::{self, FileError};

const START: i64 = 1_767_225_600_000_000_000;
const MS: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One measurement: so many samples of a millisecond, so many milliseconds after the start.
fn piece(netdev: &str, from: u64, count: u64) -> Series {
    let time = |index: u64| UtcNs(START).after(DurationNs(index * MS));
    let sample = |index: u64| {
        let flows = Sketch(u128::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let rx = Traffic { bytes: index * 997 % 12_500_000, packets: index % 9000, flows, ..Traffic::default() };
        Sample { start: time(index), length: DurationNs(MS), rx, tx: Traffic { bytes: 66, ..Traffic::default() } }
    };
    Series {
        host: "a".to_owned(),
        netdev: netdev.to_owned(),
        interval: DurationNs(MS),
        fields: Fields::both(Measured { packets: true, flows: true, ..Measured::BYTES }),
        samples: (from..from + count).map(sample).collect(),
        covered: vec![Span { start: time(from), end: time(from + count) }],
        ..Series::default()
    }
}

fn traffic(netdev: &str, from: u64, count: u64) -> kept::Kept {
    piece(netdev, from, count).into()
}

/// Asks until it answers.
#[track_caller]
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Ends with all written, however busy the machine is.
fn end(mut recorder: Recorder) {
    recorder.end_within(Duration::from_secs(120));
}

fn to(folder: &Path) -> Settings {
    let disk = DiskSettings { folder: folder.to_owned(), age: DAY * 36_500, bytes: 1 << 30 };
    Settings { memory: 16 << 20, disk: Some(disk) }
}

/// The files of a folder that a recorder wrote, in order of time, read.
fn recorded(folder: &Path) -> Vec<Series> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    paths.sort();
    paths.iter().map(|path| file::read(path).unwrap()).collect()
}

#[test]
fn what_is_pushed_is_in_memory_at_once_and_on_the_disk_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(to(folder.path())).unwrap();
    for index in 0..40 {
        recorder.push(piece("eth0", index * 1000, 1000));
        recorder.push(piece("eth1", index * 500, 500));
    }
    assert_eq!(recorder.netdevs(), ["eth0", "eth1"]);
    assert_eq!(recorder.last("eth0", DurationNs(u64::MAX)).unwrap(), piece("eth0", 0, 40_000));
    assert_eq!(recorder.last("eth0", DurationNs(2500 * MS)).unwrap(), piece("eth0", 37_500, 2500));
    assert_eq!(recorder.last("eth2", DurationNs(1)), None);
    assert_eq!(recorder.status().state, State::Recording);
    end(recorder);
    // Told apart without being printed: there are many.
    assert!(recorded(folder.path()) == [piece("eth0", 0, 40_000), piece("eth1", 0, 20_000)]);
}

/// The second piece was closed long after the first, and 2000 buckets between them were lost.
#[test]
fn what_begins_in_a_gap_is_told_with_the_piece_before() {
    let mut memory = Memory::new(1 << 20, false);
    let (now, later) = (Instant::now(), Instant::now() + 2 * limits::PIECE_TIME);
    memory.push(traffic("eth0", 0, 1000), now);
    memory.push(Series { lost: 2000, ..piece("eth0", 3000, 1000) }.into(), later);
    for (span, pieces, lost) in [(500, 1, 0), (1000, 1, 0), (1500, 2, 500), (3500, 2, 2000), (9000, 2, 2000)] {
        let (forms, span) = memory.last("bursts-eth0", DurationNs(span * MS)).unwrap();
        let plain = |form: Form| match form {
            Form::Plain(kept) => match Arc::unwrap_or_clone(kept) {
                kept::Kept::Traffic(series) => series,
                kept::Kept::Counters(_) => panic!("these are none of counters"),
            },
            Form::Packed(_) => panic!("nobody packs here"),
        };
        let forms: Vec<Series> = forms.into_iter().map(plain).collect();
        assert_eq!((forms.len(), Series::join(forms).clipped(span).lost), (pieces, lost), "{span:?}");
    }
}

#[test]
fn pieces_are_packed_while_more_come() {
    let recorder = Recorder::start(Settings { memory: 64 << 20, disk: None }).unwrap();
    for index in 0..160 {
        recorder.push(piece("eth0", index * 1000, 1000));
    }
    let plain = 160_000 * size_of::<Sample>() as u64;
    let status = until("packed", || Some(recorder.status()).filter(|status| status.memory_bytes < plain / 4));
    assert_eq!((status.state, status.waiting, status.files), (State::MemoryOnly, 0, 0));
    assert_eq!(recorder.last("eth0", DurationNs(u64::MAX)).unwrap(), piece("eth0", 0, 160_000));
}

#[test]
fn where_the_clock_was_set_back_a_new_series_begins() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(to(folder.path())).unwrap();
    recorder.push(piece("eth0", 5000, 1000));
    recorder.push(piece("eth0", 2000, 1000));
    recorder.push(piece("eth0", 3000, 1000));
    assert_eq!(recorder.last("eth0", DurationNs(u64::MAX)).unwrap(), piece("eth0", 2000, 2000));
    end(recorder);
    assert_eq!(recorded(folder.path()), [piece("eth0", 2000, 2000), piece("eth0", 5000, 1000)]);
}

/// A disk whose answers a test gives.
struct Fake {
    answers: Receiver<Result<(), FileError>>,
    kept: Arc<Mutex<Vec<Series>>>,
}

impl Store for Fake {
    fn open(&mut self, _: UtcNs) -> Result<(), FileError> {
        Ok(())
    }

    fn put(&mut self, _: &str, _: UtcNs, bytes: &[u8], _: UtcNs) -> Result<(), FileError> {
        // A test that is over leaves a disk that takes everything.
        self.answers.recv().unwrap_or(Ok(()))?;
        let kept::Kept::Traffic(series) = file::unpack(bytes.to_vec().into()).unwrap() else { panic!() };
        self.kept.lock().unwrap().push(series);
        Ok(())
    }

    fn usage(&self) -> (u64, u64) {
        (0, 0)
    }
}

type Stored = Arc<Mutex<Vec<Series>>>;

fn with_fake(memory: usize) -> (Recorder, Sender<Result<(), FileError>>, Stored) {
    let (answer, answers) = mpsc::channel();
    let kept = Stored::default();
    (Recorder::with_store(memory, Some(Fake { answers, kept: kept.clone() })).unwrap(), answer, kept)
}

fn refusal(kind: std::io::ErrorKind) -> Result<(), FileError> {
    Err(FileError::io("write", Path::new("/x"), kind.into()))
}

/// As many samples as one file holds and one more piece, which makes the file due.
fn fill(recorder: &Recorder, from: u64) -> u64 {
    let count = limits::FILE_SAMPLES as u64 / 1024 + 32;
    for index in 0..count {
        recorder.push(piece("eth0", (from + index) * 1024, 1024));
    }
    from + count
}

#[test]
fn a_full_disk_is_a_state_and_nothing_is_missing_when_it_has_room_again() {
    let (recorder, answer, kept) = with_fake(64 << 20);
    answer.send(refusal(std::io::ErrorKind::StorageFull)).unwrap();
    let count = fill(&recorder, 0);
    let state = until("full", || Some(recorder.status().state).filter(|state| *state != State::Recording));
    assert!(matches!(&state, State::DiskFull(text) if text.starts_with("no room for /x")), "{state:?}");
    // The measuring goes on meanwhile.
    recorder.push(piece("eth0", count * 1024, 1024));
    answer.send(refusal(std::io::ErrorKind::PermissionDenied)).unwrap();
    until("refusal", || matches!(recorder.status().state, State::DiskRefuses(_)).then_some(()));
    answer.send(Ok(())).unwrap();
    until("room", || (recorder.status().state == State::Recording).then_some(()));
    assert!(recorder.status().written > 0);
    drop(answer);
    end(recorder);
    let mut files = kept.lock().unwrap().clone();
    let mut all = files.remove(0);
    assert!(files.iter().all(|file| all.continue_with(file)));
    assert_eq!(all, piece("eth0", 0, (count + 1) * 1024));
}

#[test]
fn a_disk_that_hangs_holds_nobody_up_and_what_memory_cannot_keep_is_counted() {
    let (recorder, answer, kept) = with_fake(4 << 20);
    // The disk is given its first file, and says nothing.
    let mut count = fill(&recorder, 0);
    let lost = |recorder: &Recorder| recorder.status().losses.rows().map(|(_, _, count)| count).sum::<u64>();
    let start = Instant::now();
    while lost(&recorder) == 0 {
        count = fill(&recorder, count);
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    assert!(recorder.status().memory_bytes <= 4 << 20);
    let reasons: Vec<_> = recorder.status().losses.rows().filter(|(_, _, count)| *count > 0).collect();
    assert!(matches!(reasons[..], [("disk", "too_slow", _)]), "{reasons:?}");
    drop(answer);
    let lost = lost(&recorder);
    end(recorder);
    let written: u64 = kept.lock().unwrap().iter().map(|series| series.samples.len() as u64).sum();
    // A piece that was being written while it was let go is on the disk and counted as lost.
    assert!(written + lost >= count * 1024 && written <= count * 1024, "{written} and {lost} of {}", count * 1024);
}

#[test]
fn too_much_at_once_is_refused_and_counted() {
    let mut memory = Memory::new(64 << 20, true);
    assert!(!memory.push(traffic("eth0", 0, limits::PIECE_SAMPLES as u64 + 1), Instant::now()));
    let found: Vec<_> = memory.losses.rows().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(found, [("memory", "too_large", limits::PIECE_SAMPLES as u64 + 1)]);
    assert_eq!((memory.bytes(), memory.stems()), (0, vec![]));
}

#[test]
fn many_devices_share_the_budget() {
    let budget = 4 << 20;
    let mut memory = Memory::new(budget, false);
    let now = Instant::now();
    for round in 0..20 {
        for device in 0..64 {
            memory.push(traffic(&format!("eth{device}"), round * 128, 128), now);
            assert!(memory.bytes() <= budget, "{}", memory.bytes());
        }
    }
    assert_eq!(memory.stems().len(), 64);
    // Without a disk nothing is lost that was to be kept.
    assert_eq!(memory.losses.rows().map(|(_, _, count)| count).sum::<u64>(), 0);
}

#[test]
fn a_file_is_due_when_its_first_piece_is_old_or_it_is_full() {
    let mut memory = Memory::new(64 << 20, true);
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(memory.due(start, false).unwrap_err(), None);
    memory.push(traffic("eth0", 0, 1000), start);
    assert_eq!(memory.close_old(after(9), false), Some(after(10)));
    assert_eq!(memory.due(after(70), false).unwrap_err(), None, "it is still open");
    assert_eq!(memory.close_old(after(10), false), None);
    assert_eq!(memory.due(after(59), false).unwrap_err(), Some(after(60)));
    memory.push(traffic("eth0", 1000, 1000), after(11));
    memory.close_old(after(21), false);
    let run = memory.due(after(60), false).unwrap();
    assert_eq!((&*run.stem, run.pieces.len()), ("bursts-eth0", 2), "one file of both pieces");
    // A piece that does not continue the others makes them due.
    memory.push(traffic("eth0", 0, 1000), after(22));
    memory.close_old(after(23), true);
    let run = memory.due(after(24), false).unwrap();
    assert_eq!(run.pieces.len(), 2);
    memory.done(&run.pieces.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    assert_eq!(memory.due(after(24), false).unwrap_err(), Some(after(82)));
    assert!(matches!(memory.due(after(24), true).unwrap().pieces[..], [(2, Form::Plain(_))]));
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn old_files_go_by_age_and_by_bytes_and_foreign_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = ["bursts-eth0.parquet", "notes.txt", "bursts-eth0-20200101T000000.000000000Z.parquet.bak"];
    for name in foreign {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let left = ".fabricscope-abc123.part";
    fs::write(folder.path().join(left), "x").unwrap();
    fs::write(folder.path().join("bursts-gone0-20250101T000000.000000000Z.parquet"), [0; 1000]).unwrap();
    let time = |hours: i64| UtcNs(START + hours * 3_600_000_000_000);
    let settings = DiskSettings { folder: folder.path().to_owned(), age: DAY, bytes: 2500 };
    let mut disk = Disk::new(settings.clone());
    disk.open(time(0)).unwrap();
    assert!(!names(folder.path()).contains(&left.to_owned()), "what a dead agent left is removed");
    assert_eq!(disk.usage(), (0, 0), "a year is over the age");
    for hour in 0..3 {
        disk.put("bursts-eth0", time(hour), &[0; 1000], time(hour)).unwrap();
    }
    assert_eq!(disk.usage(), (2, 2000), "three are over the bytes");
    drop(disk);
    // The next agent finds what the one before wrote.
    let mut disk = Disk::new(settings);
    disk.open(time(25)).unwrap();
    assert_eq!(disk.usage(), (2, 2000));
    disk.open(time(26)).unwrap();
    assert_eq!(disk.usage(), (1, 1000));
    let kept = names(folder.path());
    assert!(foreign.iter().all(|name| kept.contains(&(*name).to_owned())), "{kept:?}");
}

#[test]
fn one_folder_is_of_one_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let settings = to(folder.path()).disk.unwrap();
    // The file is there before it is locked: who comes in between is the first, and the recorder is refused.
    let (first, refused) = until("refused", || {
        let first = Recorder::start(to(folder.path())).unwrap();
        until("taken", || folder.path().join(".lock").exists().then_some(()));
        Some((first, Disk::new(settings.clone()).open(UtcNs(0)).err()?.to_string()))
    });
    assert!(refused.contains("another agent records to this folder"), "{refused}");
    drop(first);
    Disk::new(settings).open(UtcNs(0)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_is_a_state() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let recorder = Recorder::start(to(&file.join("folder"))).unwrap();
    let state = until("refusal", || Some(recorder.status().state).filter(|state| *state != State::Recording));
    assert!(matches!(&state, State::DiskRefuses(text) if text.contains("make the folder")), "{state:?}");
    recorder.push(piece("eth0", 0, 10));
    assert_eq!(recorder.last("eth0", DurationNs(u64::MAX)).unwrap(), piece("eth0", 0, 10));
}
