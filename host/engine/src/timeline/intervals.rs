//! Sets of points in time, as disjoint half-open intervals.

/// A set of nanoseconds: disjoint, ascending, none empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(u64, u64)>);

impl FromIterator<(u64, u64)> for Intervals {
    /// The union of intervals [start, end).
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(intervals: I) -> Self {
        let mut all: Vec<_> = intervals.into_iter().filter(|(start, end)| start < end).collect();
        all.sort_unstable();
        let mut union: Vec<(u64, u64)> = vec![];
        for (start, end) in all {
            match union.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => union.push((start, end)),
            }
        }
        Self(union)
    }
}

impl Intervals {
    /// Its size in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// The intervals.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// The common part.
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut i, mut j, mut common) = (0, 0, vec![]);
        while let (Some(&(a, b)), Some(&(c, d))) = (self.0.get(i), other.0.get(j)) {
            if a.max(c) < b.min(d) {
                common.push((a.max(c), b.min(d)));
            }
            if b <= d { i += 1 } else { j += 1 }
        }
        Self(common)
    }

    /// What is in this set and not in the other.
    pub fn minus(&self, other: &Self) -> Self {
        let mut rest = vec![];
        let mut others = other.0.iter().peekable();
        for &(mut start, end) in &self.0 {
            while others.next_if(|&&(_, other_end)| other_end <= start).is_some() {}
            for &(other_start, other_end) in others.clone().take_while(|&&(other_start, _)| other_start < end) {
                if start < other_start {
                    rest.push((start, other_start));
                }
                start = start.max(other_end);
            }
            if start < end {
                rest.push((start, end));
            }
        }
        Self(rest)
    }
}
