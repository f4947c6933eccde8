//! Which counters are sampled fast: by group or by their names in the catalogue.

use std::str::FromStr;

use crate::counters::catalogue::{Group, Row, Unit, rows};

/// Groups by the word that stands for them.
const GROUPS: [(&str, Group); 7] = [
    ("traffic", Group::Traffic),
    ("pause", Group::Pause),
    ("congestion", Group::Congestion),
    ("transport", Group::Transport),
    ("host", Group::Host),
    ("link", Group::Link),
    ("requests", Group::Requests),
];

/// One word of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// All of a group that count.
    Group(Group),
    /// One, by its name.
    Counter(&'static str),
}

/// Counters that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice(pub(crate) Vec<Word>);

/// What can be written.
pub(crate) fn want() -> String {
    let words: Vec<&str> = GROUPS.iter().map(|(word, _)| *word).collect();
    format!("write groups ({}) or names as `fabricscope counters` shows them", words.join(", "))
}

/// What goes up and down has no growth to sample.
fn counts(row: &Row) -> bool {
    row.unit != Unit::Percent
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let group = GROUPS.iter().find(|(word, _)| *word == text).map(|(_, group)| Self::Group(*group));
        let row = || rows().find(|row| row.name == text && counts(row)).map(|row| Self::Counter(row.name));
        group.or_else(row).ok_or_else(|| format!("{text:?} is no counter and no group of them; {}", want()))
    }
}

impl FromStr for Choice {
    type Err = String;

    /// Words between commas or spaces.
    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let words: Vec<Word> = words.map(str::parse).collect::<Result<_, String>>()?;
        if words.is_empty() { Err(want()) } else { Ok(Self(words)) }
    }
}

impl Choice {
    /// Nothing is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a row is wanted.
    pub(super) fn wants(&self, row: &Row) -> bool {
        counts(row)
            && self.0.iter().any(|word| match word {
                Word::Group(group) => *group == row.group,
                Word::Counter(name) => *name == row.name,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::catalogue::row;

    #[test]
    fn every_group_has_a_word_and_every_row_a_group() {
        for row in rows() {
            let word = GROUPS.iter().find(|(_, group)| *group == row.group).map(|(word, _)| *word);
            let choice: Choice = word.expect(row.name).parse().unwrap();
            assert_eq!(choice.wants(row), row.unit != Unit::Percent, "{}", row.name);
        }
    }

    #[test]
    fn counters_are_chosen_by_name_too() {
        let choice: Choice = "pause, rdma_cnp_sent_packets".parse().unwrap();
        let wants = |name| choice.wants(row(name).unwrap());
        assert!(wants("pfc_sent_pause_seconds") && wants("rdma_cnp_sent_packets"));
        assert!(!wants("rdma_cnp_handled_packets") && !wants("nic_received_bytes"));
    }

    #[test]
    fn what_is_no_counter_is_refused_in_words() {
        for text in ["", "pauses", "rx_prio3_pause", "nic_pcie_stalled_read_percent"] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.contains("pause, congestion") && error.contains("fabricscope counters"), "{error}");
        }
    }
}
