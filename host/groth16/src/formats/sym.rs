//! circom's symbols (`.sym`): the name of every wire.
//!
//! Lines `label,wire,component,name`; the wire is -1 where the compiler optimised the signal away, and several signals may
//! share a wire. Source: files written by circom 2.2.3.

use super::{DecodeError, Problem, Reader};
use crate::r1cs::{MAX_VARIABLES, MatrixId, R1cs, Unsatisfied};
use std::ops::Range;

const SYM: &str = "circom symbols (.sym)";

/// Signals of a broken constraint that are named.
const SIGNALS_NAMED_MAX: usize = 12;

/// The names of wires, which are the variables of z.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sym {
    /// (wire, name), ascending; of several names of a wire the first in the file.
    names: Vec<(u32, String)>,
}

impl Sym {
    /// The name of a wire: the first in the file, for circom lists the outermost component first. Wire 0, the one, has none.
    pub fn name(&self, wire: u32) -> Option<&str> {
        let index = self.names.binary_search_by_key(&wire, |(wire, _)| *wire).ok()?;
        Some(&self.names[index].1)
    }

    /// Every wire that has a name, ascending, with it.
    pub fn names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(wire, name)| (*wire, name.as_str()))
    }

    /// The names of signals on these wires as an input gives them: without `main.` and without the indices of an array.
    pub fn signals(&self, wires: Range<u32>) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for (_, name) in self.names().filter(|(wire, _)| wires.contains(wire)) {
            let mut name = name.strip_prefix("main.").unwrap_or(name);
            while name.ends_with(']') {
                name = &name[..name.rfind('[').unwrap_or_default()];
            }
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// A broken constraint of a circuit, named by the signals in it.
    pub fn name_constraint(&self, r1cs: &R1cs, broken: Unsatisfied) -> Unsatisfied {
        let rows = MatrixId::ALL.into_iter().flat_map(|id| r1cs.matrix(id).row(broken.index));
        let mut wires: Vec<u32> = rows.map(|(wire, _)| wire).filter(|wire| *wire != 0).collect();
        wires.sort_unstable();
        wires.dedup();
        let name = |wire: &u32| self.name(*wire).map_or_else(|| format!("wire {wire}"), str::to_owned);
        let mut names: Vec<String> = wires.iter().take(SIGNALS_NAMED_MAX).map(name).collect();
        if wires.len() > SIGNALS_NAMED_MAX {
            names.push(format!("{} more", wires.len() - SIGNALS_NAMED_MAX));
        }
        Unsatisfied { name: Some(format!("of {}", names.join(", "))), ..broken }
    }
}

/// Read symbols. An error's index is the line, from 0.
pub fn read_sym(bytes: &[u8]) -> Result<Sym, DecodeError> {
    let reader = Reader::new(SYM, "lines", bytes);
    let text = str::from_utf8(bytes).map_err(|_| reader.error(None, Problem::NotText))?;
    let mut names = vec![];
    for (index, line) in (0..).zip(text.lines()) {
        let unexpected = |what, expected: &str, found: &str| {
            let (expected, found) = (expected.into(), found.escape_debug().to_string());
            reader.error(Some(index), Problem::Unexpected { what, expected, found })
        };
        let mut fields = line.splitn(4, ',').skip(1);
        let (Some(wire), Some(_component), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(unexpected("the line", "label,wire,component,name", line));
        };
        let wire: i64 = wire.parse().map_err(|_| unexpected("the wire", "a number", wire))?;
        match u32::try_from(wire) {
            Ok(wire) if u64::from(wire) < MAX_VARIABLES => names.push((wire, name.to_owned())),
            _ if wire == -1 => {}
            _ => return Err(unexpected("the wire", &format!("-1 or below {MAX_VARIABLES}"), &wire.to_string())),
        }
    }
    // Stable, so the first name of a wire stays first.
    names.sort_by_key(|(wire, _)| *wire);
    names.dedup_by_key(|(wire, _)| *wire);
    Ok(Sym { names })
}
