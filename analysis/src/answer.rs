//! What a detector says.

/// The answer to a question that the samples may be too few, too coarse or too badly dated to decide.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T, W> {
    /// What was looked for did not happen.
    Quiet,
    /// It did: the evidence.
    Found(T),
    /// The samples do not say; why not.
    CannotTell(W),
}
