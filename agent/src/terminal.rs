//! What is printed for people: lines in columns that follow the terminal's width, colour only on a terminal.

use std::io::{self, IsTerminal as _};

use textwrap::core::display_width;

/// Spaces between columns.
const GAP: usize = 2;

/// What is printed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paper {
    /// Columns of the terminal; absent where there is none (a file, a pipe) and nothing needs to be cut.
    pub(crate) width: Option<usize>,
    /// Whether escape sequences may be printed.
    pub(crate) colour: bool,
}

impl Paper {
    /// No terminal.
    pub(crate) const PLAIN: Self = Self { width: None, colour: false };

    /// Standard output as it is at this moment. No colour if `NO_COLOR` is set to anything.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Self::PLAIN;
        }
        let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
        Self {
            width: width.filter(|width| *width > 0),
            colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// The text in this style, if there may be colour.
    pub(crate) fn styled(self, style: anstyle::Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A column of a table.
pub(crate) struct Column<T> {
    /// Its heading.
    pub(crate) title: &'static str,
    /// The least width in which it says anything.
    pub(crate) min: usize,
    /// The width that most values need.
    pub(crate) wanted: usize,
    /// What is left out first where not even the least widths fit: the highest number.
    pub(crate) rank: u8,
    /// Its value.
    pub(crate) value: fn(&T) -> String,
}

/// A table: columns and their widths on one paper.
pub(crate) struct Table<'a, T> {
    columns: Vec<(&'a Column<T>, usize)>,
    cut: bool,
    colour: bool,
}

impl<'a, T> Table<'a, T> {
    /// Columns for the paper. The last column takes what is left of the line.
    pub(crate) fn new(columns: impl IntoIterator<Item = &'a Column<T>>, paper: Paper) -> Self {
        let mut columns: Vec<_> = columns.into_iter().map(|column| (column, column.wanted)).collect();
        if let Some(width) = paper.width {
            fit(&mut columns, width);
        }
        Self { columns, cut: paper.width.is_some(), colour: paper.colour }
    }

    /// The line of headings, without an end of line.
    pub(crate) fn heading(&self) -> String {
        let paper = Paper { width: None, colour: self.colour };
        paper.styled(anstyle::Style::new().bold(), &self.line(|column| column.title.to_owned()))
    }

    /// A row, without an end of line.
    pub(crate) fn row(&self, item: &T) -> String {
        self.line(|column| (column.value)(item))
    }

    fn line(&self, value: impl Fn(&Column<T>) -> String) -> String {
        let mut line = String::new();
        let mut behind = 0;
        for (number, (column, width)) in self.columns.iter().enumerate() {
            if number > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let text = clean(&value(column));
            let text = if self.cut { cut(&text, *width) } else { text };
            // A value that is wider than its column takes from the room of those after it.
            let used = display_width(&text) + behind;
            behind = used.saturating_sub(*width);
            line.push_str(&text);
            line.push_str(&" ".repeat(width.saturating_sub(used)));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Leaves columns out until the rest fits in its least widths, then shares what is left, from the left.
fn fit<T>(columns: &mut Vec<(&Column<T>, usize)>, width: usize) {
    let least = |columns: &[(&Column<T>, usize)]| -> usize {
        let widths: usize = columns.iter().map(|(column, _)| column.min).sum();
        widths + GAP * columns.len().saturating_sub(1)
    };
    while columns.len() > 1 && least(columns) > width {
        let Some(last) = columns.iter().map(|(column, _)| column.rank).max() else { break };
        columns.retain(|(column, _)| column.rank != last);
    }
    let mut left = width.saturating_sub(least(columns));
    for (column, width) in columns.iter_mut() {
        let more = column.wanted.saturating_sub(column.min).min(left);
        *width = column.min + more;
        left -= more;
    }
    if let Some((_, width)) = columns.last_mut() {
        *width += left;
    }
}

/// The text in at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        let next = display_width(&kept) + display_width(character.encode_utf8(&mut [0; 4]));
        if next >= width {
            break;
        }
        kept.push(character);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Without control characters: names come from other processes and from firmware, and would reach the terminal as
/// commands.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = [&'static str; 3];

    const COLUMNS: [Column<Row>; 3] = [
        Column { title: "NAME", min: 4, wanted: 8, rank: 0, value: |row| row[0].to_owned() },
        Column { title: "KIND", min: 4, wanted: 6, rank: 2, value: |row| row[1].to_owned() },
        Column { title: "TEXT", min: 6, wanted: 6, rank: 1, value: |row| row[2].to_owned() },
    ];

    #[track_caller]
    fn check(width: Option<usize>, row: Row, heading: &str, expected: &str) {
        let table = Table::new(&COLUMNS, Paper { width, colour: false });
        assert_eq!(table.heading(), heading);
        assert_eq!(table.row(&row), expected);
        if let Some(width) = width.filter(|width| *width >= 4) {
            assert!(display_width(&table.row(&row)) <= width);
        }
    }

    #[test]
    fn lines_follow_the_width() {
        let row = ["mlx5_0", "verbs", "something long to tell"];
        check(Some(60), row, "NAME      KIND    TEXT", "mlx5_0    verbs   something long to tell");
        check(Some(30), row, "NAME      KIND    TEXT", "mlx5_0    verbs   something l…");
        check(Some(18), row, "NAME  KIND  TEXT", "mlx…  ver…  somet…");
        check(Some(13), row, "NAME   TEXT", "mlx5…  somet…");
        check(Some(4), row, "NAME", "mlx…");
        check(None, row, "NAME      KIND    TEXT", "mlx5_0    verbs   something long to tell");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut_and_columns_recover() {
        let row = ["mlx5_0_long_name", "verbs", "text"];
        check(None, row, "NAME      KIND    TEXT", "mlx5_0_long_name  verbs  text");
        let row = ["mlx5_0_xx", "dev", "text"];
        check(None, row, "NAME      KIND    TEXT", "mlx5_0_xx  dev    text");
    }

    #[test]
    fn names_cannot_command_the_terminal() {
        check(Some(40), ["a\x1b[2J", "b\nc", ""], "NAME      KIND    TEXT", "a?[2J     b?c");
    }

    #[test]
    fn colour_is_only_where_it_may_be() {
        let style = anstyle::Style::new().bold();
        assert_eq!(Paper::PLAIN.styled(style, "x"), "x");
        assert_eq!(Paper { width: None, colour: true }.styled(style, "x"), "\x1b[1mx\x1b[0m");
    }
}
