//! The input of a circom circuit: JSON, as snarkjs takes it, into named lists of field elements.
//!
//! An object names the signals; arrays of any depth are flattened; an object inside gives names with dots and, inside an
//! array, indices (`point.x`, `points[2].x`). An element is a string, decimal or hexadecimal after `0x`, or a whole JSON
//! number from 0 to 2^64 - 1. Where snarkjs reduces modulo r, this refuses: what is not below r, negative, fractional, in
//! scientific notation, empty or a truth value has a sentence as its answer, and a name that comes twice too.

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use zeroize::Zeroize;
use zkhost_groth16::scalar::{Limbs, is_reduced, parse_limbs};

/// What an element may be.
const FORM: &str =
    "a decimal or 0x string below the modulus r was expected (a JSON number only if whole and below 2^64)";

/// Room for elements at first.
const FIRST_ROOM_ELEMENTS: usize = 64;

/// Bytes of a signal's name at most, dots and indices included: every element of an array copies it.
const NAME_BYTES_MAX: usize = 1 << 10;

/// Bytes of all names together at most: each member of an object inside repeats the name that leads to it.
const NAMES_BYTES_MAX: usize = 1 << 28;

/// Elements that are zeroed when dropped, and where the list grows, the smaller one too.
#[derive(Default)]
struct Elements(Vec<Limbs>);

impl Elements {
    fn push(&mut self, element: Limbs) {
        if self.0.len() == self.0.capacity() {
            let mut larger = Vec::with_capacity((2 * self.0.len()).max(FIRST_ROOM_ELEMENTS));
            larger.extend_from_slice(&self.0);
            self.0.as_flattened_mut().zeroize();
            self.0 = larger;
        }
        self.0.push(element);
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        self.0.as_flattened_mut().zeroize();
    }
}

/// Named signals and their values, in the order of the file. Secret: zeroed when dropped, never printed.
#[derive(Default)]
pub(super) struct Signals {
    /// A name and where its values end; they start where those before it end.
    names: Vec<(String, usize)>,
    /// Bytes of the names so far.
    name_bytes: usize,
    values: Elements,
}

impl Signals {
    /// Read an input. Errors name the signal and never quote a value.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let mut signals = Signals::default();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let at = At { signals: &mut signals, name: String::new(), indices: String::new() };
        at.deserialize(&mut deserializer)
            .and_then(|_| deserializer.end())
            // The library's own texts quote what they found; ours come through as they are.
            .map_err(|error| match error.classify() {
                serde_json::error::Category::Data => error.to_string(),
                _ => format!("the input is no JSON at line {}, column {}", error.line(), error.column()),
            })?;
        let mut seen = HashSet::new();
        match signals.names.iter().find(|(name, _)| !seen.insert(name)) {
            Some((name, _)) => Err(format!("signal `{name}` is given twice; give each signal once")),
            None => Ok(signals),
        }
    }

    /// The signals in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Limbs])> {
        let mut start = 0;
        self.names.iter().map(move |(name, end)| {
            let values = &self.values.0[start..*end];
            start = *end;
            (name.as_str(), values)
        })
    }

    /// Append a value of a signal, which is the last one named or a new one.
    fn push(&mut self, name: &str, value: Limbs) {
        self.touch(name);
        self.values.push(value);
        self.names.last_mut().expect("it was touched").1 += 1;
    }

    /// Name a signal that may have no value.
    fn touch(&mut self, name: &str) {
        if self.names.last().is_none_or(|(last, _)| last != name) {
            self.names.push((name.to_owned(), self.values.0.len()));
        }
    }
}

/// A place in the input: the name that leads to it, and the indices of arrays since that name.
struct At<'a> {
    signals: &'a mut Signals,
    name: String,
    indices: String,
}

impl At<'_> {
    fn refuse<E: Error>(&self, why: impl fmt::Display) -> E {
        match self.name.is_empty() {
            true => E::custom(format_args!("{why}: an object with a member for each input signal was expected")),
            false => E::custom(format_args!("signal `{}{}`: {why}", self.name, self.indices)),
        }
    }

    fn element<E: Error>(self, value: Option<Limbs>) -> Result<(), E> {
        match value {
            _ if self.name.is_empty() => Err(self.refuse("the input is a single value")),
            Some(value) if is_reduced(&value) => {
                self.signals.push(&self.name, value);
                Ok(())
            }
            Some(_) => Err(self.refuse("the value is not below the modulus r of BLS12-381's scalar field")),
            None => Err(self.refuse(FORM)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORM)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.element(parse_limbs(text).ok())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.element(Some([value, 0, 0, 0]))
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<(), E> {
        self.element(None)
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<(), E> {
        self.element(None)
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<(), E> {
        self.element(None)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.element(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        if self.name.is_empty() {
            return Err(self.refuse("the input is an array"));
        }
        let mut index = 0u64;
        loop {
            let indices = format!("{}[{index}]", self.indices);
            let at = At { signals: &mut *self.signals, name: self.name.clone(), indices };
            if sequence.next_element_seed(at)?.is_none() {
                break;
            }
            index += 1;
        }
        if index == 0 {
            self.signals.touch(&self.name);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let name = match self.name.is_empty() {
                true => key,
                false => format!("{}{}.{key}", self.name, self.indices),
            };
            self.signals.name_bytes += name.len();
            if name.len() > NAME_BYTES_MAX || self.signals.name_bytes > NAMES_BYTES_MAX {
                return Err(A::Error::custom(format_args!(
                    "the names of signals, with all that leads to them, have {NAME_BYTES_MAX} bytes each and \
                     {NAMES_BYTES_MAX} bytes together at most; give shorter names, or arrays instead of objects"
                )));
            }
            let already = self.signals.names.len();
            map.next_value_seed(At { signals: &mut *self.signals, name: name.clone(), indices: String::new() })?;
            // The same name twice in a row would look like one signal.
            if self.signals.names.len() == already && self.signals.names.last().is_some_and(|(last, _)| *last == name) {
                return Err(A::Error::custom(format_args!("signal `{name}` is given twice; give each signal once")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signals of an input, as name and values.
    fn check(json: &str) -> Result<Vec<(String, Vec<u64>)>, String> {
        let signals = Signals::parse(json.as_bytes())?;
        Ok(signals.iter().map(|(name, values)| (name.into(), values.iter().map(|v| v[0]).collect())).collect())
    }

    #[test]
    fn arrays_are_flattened_and_objects_give_paths() {
        let found =
            check(r#"{"a": [[1, "2"], ["0x3", 4]], "p": {"x": 5, "q": [{"y": [6]}, {"y": 7}]}, "e": []}"#).unwrap();
        let expected =
            [("a", vec![1, 2, 3, 4]), ("p.x", vec![5]), ("p.q[0].y", vec![6]), ("p.q[1].y", vec![7]), ("e", vec![])];
        assert_eq!(found, expected.map(|(name, values)| (name.to_owned(), values)));
    }

    #[test]
    fn names_do_not_outgrow_the_input() {
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        for json in [format!("{{\"{long}\": 1}}"), format!("{{\"{}\": [{{\"x\": 1}}]}}", &long[1..])] {
            assert!(check(&json).unwrap_err().contains("1024 bytes each"));
        }
    }

    #[test]
    fn many_values_grow_their_room() {
        let values: Vec<u64> = (0..1000).collect();
        assert_eq!(check(&format!("{{\"a\": {values:?}}}")).unwrap(), [("a".to_owned(), values)]);
    }

    /// circom issue 407: inputs at or above the prime, and odd spellings, were reduced or taken silently.
    #[test]
    fn circom_i407_every_odd_value_is_refused_by_name() {
        let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
        let above = [format!("\"{r}\""), format!("\"{}8\"", &r[..r.len() - 1]), format!("\"0x1{}\"", "0".repeat(64))];
        let odd = ["-1", "\"-1\"", "1e3", "\"1e3\"", "1.5", "\"\"", "\"0x\"", "true", "null", "18446744073709551616"];
        for value in above.iter().map(String::as_str).chain(odd) {
            let error = check(&format!(r#"{{"ok": 1, "x": [0, {value}]}}"#)).unwrap_err();
            assert!(error.contains("signal `x[1]`"), "{value}: {error}");
        }
        let largest = format!("\"{}2\"", &r[..r.len() - 1]);
        check(&format!(r#"{{"x": {largest}}}"#)).unwrap();
    }

    /// circom_runtime issue 7: repeated inputs passed unnoticed.
    #[test]
    fn circom_runtime_i7_a_repeated_signal_is_refused() {
        for json in [r#"{"a": 1, "a": 2}"#, r#"{"a": 1, "b": 2, "a": 3}"#, r#"{"a": {"b": 1}, "a.b": 2}"#] {
            assert!(check(json).unwrap_err().contains("is given twice"), "{json}");
        }
    }

    #[test]
    fn other_documents_are_refused_without_quoting_them() {
        for json in ["", "7", "[1]", "{\"a\": ", "{\"a\": 1} x", "{\"a\": 12345678901234567890123}", "\"12345678\""] {
            let error = check(json).unwrap_err();
            assert!(!error.contains("12345678"), "{json}: {error}");
        }
    }
}
