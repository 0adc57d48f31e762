//! What the parameters ask for.

use serde::Deserialize;

/// How to behave: `{"act": "trap", "at": "assign"}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Params {
    /// The misbehaviour.
    pub act: Act,
    /// The export in which the acts that any export can do are done.
    pub at: Export,
    /// Partitions of the honest plan.
    pub partitions: u32,
    /// Segments of the honest plan.
    pub segments: u32,
    /// Whether the honest plan declares its counts; one of several segments must.
    pub declare_counts: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { act: Act::None, at: Export::Assign, partitions: 1, segments: 1, declare_counts: true }
    }
}

/// The exports that parameters reach.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Export {
    Plan,
    RecordShape,
    Open,
    Assign,
}

/// What to do.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Behave.
    None,

    // In any export.
    /// Execute an `unreachable` instruction.
    Trap,
    /// Panic with the input in the message.
    Panic,
    /// Loop for ever.
    Loop,
    /// Allocate and touch memory without end.
    Allocate,
    /// Recurse without end.
    Recurse,
    /// Log a line with control characters, an escape sequence and a line feed.
    LogControls,
    /// Log lines without end.
    LogFlood,
    /// Log one line of 64 MiB.
    LogHuge,
    /// Refuse with a text that has control characters and an escape sequence.
    ErrorControls,
    /// Refuse with a text of 64 MiB.
    ErrorHuge,
    /// Refuse as unsupported.
    Refuse,
    /// Ask the host to invert a number that is not below r.
    InvertUnreduced,
    /// Report progress without end.
    ProgressFlood,

    // In `plan`.
    /// No partition.
    NoPartitions,
    /// 2^32 - 1 partitions.
    ManyPartitions,
    /// No segment.
    NoSegments,
    /// 1,025 segments of one variable.
    ManySegments,
    /// A gap between two segments.
    SegmentGap,
    /// Two segments that share a variable.
    SegmentOverlap,
    /// Segments whose end is beyond 2^64.
    SegmentOverflow,
    /// A segment of 2^63 variables.
    SegmentHuge,
    /// A segment that declares more full elements than variables.
    MaxFullHuge,
    /// Two segments that do not declare their counts.
    SegmentsUndeclared,

    // In `record-shape`.
    /// One row of C too few.
    RowsDiffer,
    /// A column that is no aux variable.
    BadColumn,
    /// A column that is no public input.
    BadPublicColumn,
    /// A coefficient that is not in the dictionary.
    BadCoefficientIndex,
    /// A coefficient that is r.
    UnreducedCoefficient,
    /// A coefficient of three limbs.
    PartialCoefficient,
    /// Row lengths that do not add up to the number of columns.
    BadRowLengths,
    /// Fewer coefficients than columns.
    FewerCoefficients,
    /// Row lengths whose sum overflows 32 bits.
    RowLengthsOverflow,
    /// Name rows though names were not asked for.
    NameUnasked,
    /// Name one row too few.
    NameFewer,
    /// Name one row too many.
    NameMore,
    /// Name rows with control characters, an escape sequence and a bidirectional override.
    NameControls,
    /// Rows without end.
    RowFlood,
    /// Coefficients without end.
    CoefficientFlood,
    /// Names without end.
    NameFlood,
    /// Claim one public input too many.
    LyingPublics,
    /// Claim 2^40 aux variables too many.
    LyingAux,
    /// Claim one constraint too many.
    LyingConstraints,

    // In `assign`.
    /// One group too many.
    MoreGroups,
    /// One group too few.
    FewerGroups,
    /// Nothing at all.
    Nothing,
    /// Groups without end.
    GroupFlood,
    /// More full elements than the plan declares.
    MoreFull,
    /// A full element that is r.
    Unreduced,
    /// A variable that is full and one.
    MasksOverlap,
    /// A padding bit of `full` set.
    PaddingFull,
    /// A padding bit of `one` set.
    PaddingOne,
    /// An odd number of mask words.
    OddMasks,
    /// One limb too few.
    FewerLimbs,
    /// One limb too many.
    MoreLimbs,
    /// A call of more than 4 MiB.
    HugeCall,
    /// The public input twice.
    PublicTwice,
    /// No public input.
    PublicMissing,
    /// A public input that is r.
    PublicUnreduced,
    /// A public input of three limbs.
    PublicPartial,
    /// The public input from the last segment instead of the first.
    PublicFromLaterSegment,
    /// A wrong product, so that constraint 0 does not hold.
    Unsatisfied,
    /// Other bits at every call in one instance, each a satisfying assignment.
    Undetermined,
}
