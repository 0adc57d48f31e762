//! Parameters and inputs as JSON: what is accepted, and that refusals name the field and hide the value.

use serde::Deserialize;
use zkhost_guest::input::{Part, RawValue, ReadInput, Text};
use zkhost_guest::{Circuit, Error, Fr, HexBytes, Info, NoParams, Scope, Synthesis, job};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "most is only parsed")]
struct Input {
    amount: u64,
    key: HexBytes<4>,
    list: Vec<bool>,
}

struct Parsed;

impl Circuit for Parsed {
    type Field = Fr;
    type Params = NoParams;
    type Input = Input;

    fn info() -> Info {
        Info { name: "parsed", version: "1.0.0", about: "", params_help: "", input_help: "" }
    }

    fn blank(_params: &NoParams) -> Result<Self, Error> {
        Ok(Parsed)
    }

    fn open(_params: &NoParams, _input: Input) -> Result<Self, Error> {
        Ok(Parsed)
    }

    fn synthesize(&self, _scope: Scope, _cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        Ok(())
    }
}

fn open(params: &str, input: &str) -> Result<(), Error> {
    job::Job::<Parsed>::open(params.as_bytes(), input.as_bytes(), input.len() as u64).map(|_| ())
}

/// An input is refused with a sentence that starts like this and quotes nothing of it.
fn check_refused(input: &str, sentence: &str) {
    let Err(Error::BadInput(found)) = open("", input) else { panic!("{input} was not refused as input") };
    assert!(found.starts_with(sentence), "{found}");
    assert!(!found.contains("secret") && !found.contains("4711"), "the value is quoted: {found}");
}

#[test]
fn well_formed_inputs_are_accepted() {
    assert_eq!(open("", r#"{"amount": 1, "key": "00fFAb10", "list": [true]}"#), Ok(()));
    assert_eq!(open("{}", "\n {\"list\": [], \"key\": \"00000000\", \"amount\": 18446744073709551615} \n"), Ok(()));
}

#[test]
fn circom_i407_numbers_out_of_range_are_refused_not_reduced() {
    let amount = |text: &str| format!(r#"{{"amount": {text}, "key": "00000000", "list": []}}"#);
    for number in ["-1", "18446744073709551616", "1e3", "1.5"] {
        check_refused(&amount(number), "field `amount`: invalid");
    }
    for text in [r#""secret""#, r#""0x10""#, r#""""#, "null", "true", "[4711]", r#"{"secret": 4711}"#] {
        check_refused(&amount(text), "field `amount`: invalid type, expected u64");
    }
}

#[test]
fn circom_runtime_i7_missing_extra_repeated_and_misspelt_fields_are_refused() {
    check_refused(r#"{"amount": 4711, "list": []}"#, "missing field `key`");
    check_refused(
        r#"{"amount": 4711, "key": "00000000", "list": [], "more": 4711}"#,
        "field `more`: unknown field `more`, expected one of `amount`, `key`, `list`",
    );
    check_refused(r#"{"amuont": 4711}"#, "field `amuont`: unknown field `amuont`");
    check_refused(r#"{"amount": 4711, "amount": 4711}"#, "duplicate field `amount`");
}

#[test]
fn mistyped_elements_are_named_by_their_path() {
    check_refused(
        r#"{"amount": 1, "key": "00000000", "list": [true, "secret"]}"#,
        "field `list[1]`: invalid type, expected a boolean",
    );
    for key in ["", "0000000", "000000000", "0x000000", "secret!!", "éééé"] {
        check_refused(
            &serde_json::json!({ "key": key }).to_string(),
            "field `key`: 4 bytes as 8 hexadecimal digits, without prefix, were expected",
        );
    }
}

#[test]
fn what_is_no_json_is_refused() {
    check_refused("", "EOF while parsing");
    check_refused(r#"{"amount": 1"#, "EOF while parsing");
    check_refused("secret", "expected value");
    check_refused(
        r#"{"amount": 1, "key": "00000000", "list": []} 4711"#,
        "one JSON value was expected; more follows it",
    );
    check_refused(&"[".repeat(100_000), "field `[0]`: invalid type");
}

/// An input of which only the outline is parsed at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outline<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

fn outline(json: &str) -> Result<(Text, Vec<Part>), Error> {
    let text = Text::read(json.as_bytes(), json.len() as u64)?;
    let outline: Outline<'_> = text.parse()?;
    let parts = outline.parts.iter().map(|part| text.part(part)).collect();
    Ok((text, parts))
}

#[test]
fn parts_are_parsed_when_they_are_needed_and_refused_by_their_place() {
    let (text, parts) = outline(
        r#" {"parts": [ {"amount": 7, "key": "00fFAb10", "list": []} , {"amount": 4711, "key": "secret"}, [], {}]}"#,
    )
    .expect("an outline");
    assert_eq!(text.parse_part::<Input>(&parts[0], "parts[0]").map(|input| input.amount), Ok(7));
    for (part, sentence) in [
        (1, "field `parts[1].key`: 4 bytes as 8 hexadecimal digits, without prefix, were expected"),
        (2, "field `parts[2]`: invalid length 0, expected struct Input with 3 elements"),
        (3, "field `parts[3]`: missing field `amount`"),
    ] {
        let refused = text.parse_part::<Input>(&parts[part], &format!("parts[{part}]")).err();
        assert_eq!(refused, Some(Error::BadInput(sentence.into())));
    }
    let list = text.parse_part::<Vec<bool>>(&parts[0], "parts[0]").err();
    assert_eq!(list, Some(Error::BadInput("field `parts[0]`: invalid type, expected a sequence".into())));
}

#[test]
fn what_is_no_json_is_refused_at_once_wherever_it_is() {
    for (json, sentence) in [
        (r#"{"parts": [{"amount": secret}]}"#, "field `parts[0]`: expected value at line 1 column 23"),
        (r#"{"parts": [{}, {"amount": 4711]}"#, "field `parts[1]`: expected `,` or `}`"),
        (r#"{"parts": [{}, "secret"#, "field `parts[1]`: EOF while parsing a string"),
        ("{\"parts\": [1, \"\u{1}\"]}", "field `parts[1]`: control character"),
        (r#"{"parts": [], "more": 4711}"#, "field `more`: unknown field `more`, expected `parts`"),
        (r#"{"parts": []} 4711"#, "one JSON value was expected; more follows it"),
    ] {
        let Err(Error::BadInput(found)) = outline(json) else { panic!("{json} was not refused") };
        assert!(found.starts_with(sentence), "{found}");
    }
}

#[test]
fn a_part_of_another_text_is_nothing() {
    let (_other, parts) = outline(r#"{"parts": ["secret", 4711]}"#).expect("an outline");
    let (text, _) = outline(r#"{"parts": [true]}"#).expect("an outline");
    let refused = text.parse_part::<bool>(&parts[0], "parts[0]");
    assert_eq!(refused, Err(Error::BadInput("field `parts[0]`: EOF while parsing a value".into())));
}

#[test]
fn parameters_of_a_circuit_without_any_are_empty() {
    let input = r#"{"amount": 1, "key": "00000000", "list": []}"#;
    assert!(
        matches!(open(r#"{"depth": 3}"#, input), Err(Error::BadParams(text)) if text.contains("unknown field `depth`"))
    );
}
