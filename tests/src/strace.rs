//! What `strace -f -y` saw: the system calls on RDMA devices that were refused.

use std::collections::{BTreeMap, HashMap};

/// The devices' folder, as `-y` shows it behind a file's number.
const DEVICES: &str = "</dev/infiniband/";

/// How often each error came back from a call on a file in `/dev/infiniband`, by the error's name.
///
/// A call that another thread interrupts in the output stands there in two parts; they are put together again.
#[must_use]
pub fn refused(log: &str) -> BTreeMap<String, usize> {
    let mut errors = BTreeMap::new();
    let mut unfinished = HashMap::new();
    for line in log.lines() {
        let Some((thread, call)) = line.trim_start().split_once(char::is_whitespace) else { continue };
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, start);
            continue;
        }
        let whole = match call.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
            Some((_, end)) => format!("{}{end}", unfinished.remove(thread).unwrap_or_default()),
            None => call.to_owned(),
        };
        if let Some(error) = error_of(&whole) {
            *errors.entry(error.to_owned()).or_default() += 1;
        }
    }
    errors
}

fn error_of(call: &str) -> Option<&str> {
    let (start, result) = call.rsplit_once(" = -1 ")?;
    // Only the first argument counts: a path in another one is no file of the call.
    let (name, arguments) = start.split_once('(')?;
    let first = arguments.split(',').next()?;
    let device =
        ["ioctl", "write", "mmap"].contains(&name) && if name == "mmap" { arguments } else { first }.contains(DEVICES);
    device.then(|| result.split(' ').next().unwrap_or_default())
}

/// How many calls there were on a file: opening it, and ioctl, write and mmap on it.
#[must_use]
pub fn calls(log: &str, path: &str) -> usize {
    let name = format!("\"{path}\"");
    let opened = |line: &str| line.contains("openat(") && line.contains(&name);
    let file = [format!("<{path}>"), format!("<{path}<")];
    let used = |line: &str| {
        ["ioctl(", "write(", "mmap("].iter().any(|name| line.contains(name))
            && file.iter().any(|file| line.contains(file))
    };
    log.lines().filter(|line| !line.contains(" resumed>") && (opened(line) || used(line))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(log: &str, expected: &[(&str, usize)]) {
        let expected: BTreeMap<_, _> = expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(refused(log), expected);
    }

    #[test]
    fn refused_calls_on_rdma_devices_are_counted_by_error() {
        check(
            "200   ioctl(3</dev/infiniband/uverbs0>, RDMA_VERBS_IOCTL, 0x7f) = -1 ENOSPC (No space left on device)\n\
             200   ioctl(3</dev/infiniband/uverbs0<char 231:192>>, RDMA_VERBS_IOCTL, 0x7f) = -1 ENODATA (No data)\n\
             201   write(5</dev/infiniband/rdma_cm>, \"abc\", 3) = -1 ENODATA (No data available)\n\
             200   mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</dev/infiniband/uverbs0>, 0) = -1 EINVAL (Invalid)\n",
            &[("EINVAL", 1), ("ENODATA", 2), ("ENOSPC", 1)],
        );
    }

    #[test]
    fn successes_and_other_files_do_not_count() {
        check(
            "200   ioctl(3</dev/infiniband/uverbs0>, RDMA_VERBS_IOCTL, 0x7f) = 0\n\
             200   ioctl(1</dev/pts/0>, TCGETS, 0x7f) = -1 ENOTTY (Inappropriate ioctl for device)\n\
             200   write(1</tmp/x>, \"3</dev/infiniband/uverbs0>\", 9) = -1 ENOSPC (No space left on device)\n\
             200   openat(AT_FDCWD</>, \"/dev/infiniband/uverbs9\", O_RDWR) = -1 ENOENT (No such file)\n\
             200   +++ exited with 0 +++\n",
            &[],
        );
    }

    #[test]
    fn calls_on_one_file_are_counted_once_each() {
        let log = "200   openat(AT_FDCWD</>, \"/dev/infiniband/uverbs0\", O_RDWR) = 3</dev/infiniband/uverbs0>\n\
                   200   openat(AT_FDCWD</>, \"/dev/infiniband/uverbs1\", O_RDWR) = 4</dev/infiniband/uverbs1>\n\
                   200   ioctl(3</dev/infiniband/uverbs0<char 231:192>>, RDMA_VERBS_IOCTL, 0x7f <unfinished ...>\n\
                   200   <... ioctl resumed>) = 0\n\
                   200   mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</dev/infiniband/uverbs0>, 0) = 0x7f\n\
                   200   write(1</tmp/x>, \"a\", 1) = 1\n";
        assert_eq!((calls(log, "/dev/infiniband/uverbs0"), calls(log, "/dev/infiniband/uverbs1")), (3, 1));
    }

    #[test]
    fn the_parts_of_an_interrupted_call_belong_together() {
        check(
            "200   ioctl(3</dev/infiniband/uverbs0>, RDMA_VERBS_IOCTL, 0x7f <unfinished ...>\n\
             201   read(4</tmp/x>,  <unfinished ...>\n\
             200   <... ioctl resumed>) = -1 ETIMEDOUT (Connection timed out)\n\
             201   <... read resumed>\"\", 9) = -1 EIO (Input/output error)\n",
            &[("ETIMEDOUT", 1)],
        );
    }
}
