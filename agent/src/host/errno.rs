//! Error numbers of the kernel: name and short meaning.

use std::borrow::Cow;

/// Number, name, meaning.
struct Row(i32, &'static str, &'static str);

/// The number comes from the C library's headers, since some differ between architectures.
macro_rules! row {
    ($name:ident, $meaning:literal) => {
        Row(libc::$name, stringify!($name), $meaning)
    };
}

const ROWS: &[Row] = &[
    row!(EPERM, "operation not permitted"),
    row!(ENOENT, "no such object or file"),
    row!(ESRCH, "no such process"),
    row!(EINTR, "interrupted by a signal"),
    row!(EIO, "input/output error"),
    row!(ENXIO, "no such device or address"),
    row!(E2BIG, "argument list too long"),
    row!(ENOEXEC, "not an executable"),
    row!(EBADF, "bad file descriptor"),
    row!(ECHILD, "no child process"),
    row!(EAGAIN, "try again, or a limit is reached"),
    row!(ENOMEM, "out of memory, or over the locked-memory limit"),
    row!(EACCES, "permission denied"),
    row!(EFAULT, "bad address"),
    row!(ENOTBLK, "not a block device"),
    row!(EBUSY, "in use"),
    row!(EEXIST, "exists already"),
    row!(EXDEV, "link across devices"),
    row!(ENODEV, "no such device"),
    row!(ENOTDIR, "not a directory"),
    row!(EISDIR, "is a directory"),
    row!(EINVAL, "invalid argument"),
    row!(ENFILE, "too many open files in the system"),
    row!(EMFILE, "too many open files in the process"),
    row!(ENOTTY, "no such ioctl"),
    row!(ETXTBSY, "program file is in use"),
    row!(EFBIG, "too large"),
    row!(ENOSPC, "no room for the answer or the object"),
    row!(ESPIPE, "cannot seek"),
    row!(EROFS, "read-only file system"),
    row!(EMLINK, "too many links"),
    row!(EPIPE, "other end is closed"),
    row!(EDOM, "argument outside the domain"),
    row!(ERANGE, "result out of range"),
    row!(EDEADLK, "would deadlock"),
    row!(ENAMETOOLONG, "name too long"),
    row!(ENOLCK, "no locks left"),
    row!(ENOSYS, "no such system call"),
    row!(ENOTEMPTY, "not empty"),
    row!(ELOOP, "too many symbolic links"),
    row!(ENOMSG, "no such message"),
    row!(EIDRM, "identifier removed"),
    row!(ENOSTR, "not a stream"),
    row!(ENODATA, "no data, or an empty table entry"),
    row!(ETIME, "timer expired"),
    row!(ENOSR, "out of stream resources"),
    row!(ENOLINK, "link is gone"),
    row!(EPROTO, "protocol error"),
    row!(EBADMSG, "bad message"),
    row!(EOVERFLOW, "value too large for its type"),
    row!(ENOTUNIQ, "not unique on the network"),
    row!(EBADFD, "file descriptor in a bad state"),
    row!(EREMCHG, "remote address changed"),
    row!(EILSEQ, "invalid byte sequence"),
    row!(EUSERS, "too many users"),
    row!(ENOTSOCK, "not a socket"),
    row!(EDESTADDRREQ, "destination address needed"),
    row!(EMSGSIZE, "message too long"),
    row!(EPROTOTYPE, "wrong protocol type"),
    row!(ENOPROTOOPT, "no such protocol option"),
    row!(EPROTONOSUPPORT, "method or protocol not supported"),
    row!(ESOCKTNOSUPPORT, "socket type not supported"),
    row!(EOPNOTSUPP, "operation not supported"),
    row!(EPFNOSUPPORT, "protocol family not supported"),
    row!(EAFNOSUPPORT, "address family not supported"),
    row!(EADDRINUSE, "address in use"),
    row!(EADDRNOTAVAIL, "address not available"),
    row!(ENETDOWN, "network is down"),
    row!(ENETUNREACH, "network unreachable"),
    row!(ENETRESET, "network dropped the connection"),
    row!(ECONNABORTED, "connection aborted"),
    row!(ECONNRESET, "connection reset"),
    row!(ENOBUFS, "no buffer space"),
    row!(EISCONN, "connected already"),
    row!(ENOTCONN, "not connected"),
    row!(ESHUTDOWN, "endpoint is shut down"),
    row!(ETIMEDOUT, "timed out"),
    row!(ECONNREFUSED, "connection refused"),
    row!(EHOSTDOWN, "host is down"),
    row!(EHOSTUNREACH, "no route to host"),
    row!(EALREADY, "in progress already"),
    row!(EINPROGRESS, "now in progress"),
    row!(ESTALE, "stale handle"),
    row!(EREMOTEIO, "remote input/output error"),
    row!(EDQUOT, "over quota"),
    row!(ENOMEDIUM, "no medium"),
    row!(EMEDIUMTYPE, "wrong medium type"),
    row!(ECANCELED, "cancelled"),
    row!(ENOKEY, "no such key"),
    row!(EKEYEXPIRED, "key expired"),
    row!(EKEYREVOKED, "key revoked"),
    row!(EKEYREJECTED, "key rejected"),
    row!(EOWNERDEAD, "owner died"),
    row!(ENOTRECOVERABLE, "state cannot be recovered"),
    row!(ERFKILL, "radio is switched off"),
    row!(EHWPOISON, "memory page has a hardware error"),
    // Never leave the kernel as they are, but its functions return them (include/linux/errno.h).
    Row(512, "ERESTARTSYS", "interrupted, the kernel restarts the call"),
    Row(513, "ERESTARTNOINTR", "interrupted, the kernel restarts the call"),
    Row(514, "ERESTARTNOHAND", "interrupted, restarted if no handler ran"),
    Row(515, "ENOIOCTLCMD", "no such ioctl, seen by the program as ENOTTY"),
    Row(516, "ERESTART_RESTARTBLOCK", "interrupted, restarted by the kernel's own call"),
    Row(517, "EPROBE_DEFER", "driver asks to be probed later"),
    Row(524, "ENOTSUPP", "operation not supported, the kernel's own number"),
];

fn row(number: i32) -> Option<&'static Row> {
    let number = number.checked_abs()?;
    ROWS.iter().find(|row| row.0 == number)
}

/// The name of an error number of either sign: `EINVAL` for 22 and -22, `errno_4095` where unknown.
#[must_use]
pub(crate) fn errno_name(number: i32) -> Cow<'static, str> {
    match row(number) {
        Some(row) => Cow::Borrowed(row.1),
        None => Cow::Owned(format!("errno_{}", number.unsigned_abs())),
    }
}

/// What the error number says, in a few words, as the RDMA subsystem uses it; `None` where unknown.
#[must_use]
pub(crate) fn errno_meaning(number: i32) -> Option<&'static str> {
    row(number).map(|row| row.2)
}

/// The number of a name (`EINVAL` → 22), in either case; for filters that users write.
#[must_use]
pub(crate) fn errno_number(name: &str) -> Option<i32> {
    let row = ROWS.iter().find(|row| row.1.eq_ignore_ascii_case(name));
    row.map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check(number: i32, name: &str, meaning: Option<&str>) {
        assert_eq!(errno_name(number), name);
        assert_eq!(errno_meaning(number), meaning);
    }

    #[test]
    fn numbers_of_either_sign_have_names() {
        check(22, "EINVAL", Some("invalid argument"));
        check(-22, "EINVAL", Some("invalid argument"));
        check(-14, "EFAULT", Some("bad address"));
        check(-515, "ENOIOCTLCMD", Some("no such ioctl, seen by the program as ENOTTY"));
        check(4095, "errno_4095", None);
        check(0, "errno_0", None);
        check(i32::MIN, "errno_2147483648", None);
    }

    #[test]
    fn every_error_of_the_ground_truth_has_a_name() {
        let numbers = [1, 2, 11, 12, 13, 14, 16, 22, 25, 28, 61, 93, 95, 110];
        let names = [
            "EPERM",
            "ENOENT",
            "EAGAIN",
            "ENOMEM",
            "EACCES",
            "EFAULT",
            "EBUSY",
            "EINVAL",
            "ENOTTY",
            "ENOSPC",
            "ENODATA",
            "EPROTONOSUPPORT",
            "EOPNOTSUPP",
            "ETIMEDOUT",
        ];
        for (number, name) in numbers.into_iter().zip(names) {
            assert_eq!(errno_name(number), name);
        }
    }

    #[test]
    fn names_lead_back_to_their_numbers() {
        for row in ROWS {
            assert_eq!(errno_number(row.1), Some(row.0), "{}", row.1);
            assert_eq!(errno_name(row.0), row.1);
        }
        assert_eq!(errno_number("einval"), Some(22));
        assert_eq!(errno_number("EWHAT"), None);
    }

    #[test]
    fn no_number_stands_twice() {
        let numbers: BTreeSet<_> = ROWS.iter().map(|row| row.0).collect();
        assert_eq!(numbers.len(), ROWS.len());
    }
}
