//! Reads what `/metrics` answers: the Prometheus text format, as far as the tests look at it.

/// The sum of a metric's series that carry all of these labels; `None` when there is no such series.
#[must_use]
pub fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let values: Vec<f64> = text.lines().filter_map(|line| value(line, name, labels)).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

fn value(line: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    // Another metric may begin with this one's name.
    let (carried, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once("} ")?,
        None => ("", rest.strip_prefix(' ')?),
    };
    let has = |(label, wanted): &(&str, &str)| format!(",{carried},").contains(&format!(",{label}=\"{wanted}\","));
    // A time stamp may follow the value.
    labels.iter().all(has).then(|| value.split(' ').next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HTTP/1.0 200 OK\r\n\r\n# HELP calls_total Calls.\n# TYPE calls_total counter\n\
        calls_total{device=\"rxe0\",verb=\"reg_mr\"} 12\ncalls_total{device=\"rxe1\",verb=\"reg_mr\"} 3\n\
        calls_total{device=\"rxe0\",verb=\"create_cq\"} 0\ncalls_total_more 7\noldest_seconds 1.5 1700000000\n";

    #[track_caller]
    fn check(name: &str, labels: &[(&str, &str)], expected: Option<f64>) {
        assert_eq!(sum(TEXT, name, labels), expected);
    }

    #[test]
    fn series_with_all_labels_are_added_up() {
        check("calls_total", &[], Some(15.0));
        check("calls_total", &[("verb", "reg_mr")], Some(15.0));
        check("calls_total", &[("verb", "reg_mr"), ("device", "rxe1")], Some(3.0));
        check("calls_total", &[("verb", "create_cq")], Some(0.0));
        check("oldest_seconds", &[], Some(1.5));
    }

    #[test]
    fn what_is_not_there_is_none_and_no_zero() {
        check("calls_total", &[("verb", "mr")], None);
        check("calls", &[], None);
        check("oldest_seconds", &[("verb", "reg_mr")], None);
    }
}
