//! A circuit's manifest: the TOML that names its program, its keys and its limits.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use zkhost_runtime::Limits;

/// Its name in a folder of the circuits' folder.
pub const MANIFEST_FILE: &str = "manifest.toml";

/// Bytes of a manifest at most.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the name of a circuit or a key at most.
const NAME_BYTES_MAX: usize = 64;

/// Keys of a manifest at most.
const KEYS_MAX: usize = 16;

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What jobs may call the circuit: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its files.
    pub files: Files<FileRef>,
    /// The circuit's parameters, JSON as text; empty for its defaults. A circom circuit has none.
    pub params: String,
    /// Limits by name that differ from the defaults; times in seconds.
    pub limits: BTreeMap<String, u64>,
}

/// The files of a circuit, each in the way that `F` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files<F> {
    /// What is proved.
    pub program: Program<F>,
    /// By which keys, one at least; the first one is used unless another is asked for.
    pub keys: Vec<Key<F>>,
}

/// What writes assignments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program<F> {
    /// A component.
    Component(F),
    /// What circom makes of a circuit.
    Circom {
        /// The constraint system.
        r1cs: F,
        /// The witness module.
        wasm: F,
        /// The names of signals, for messages.
        sym: Option<F>,
    },
}

/// A proving key: a key image, or, for a circom circuit, a `.zkey` file as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<F> {
    /// What jobs may call it, after the circuit's name and a colon; empty if it is the only one.
    pub name: String,
    /// Its file.
    pub file: F,
}

/// A file that belongs to a circuit: one beside the manifest, an uploaded one, or one that is both named and checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRef {
    /// Its name in the manifest's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// BLAKE3 of its bytes. Required of uploaded files; checked where given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}

/// The manifest as it is written. Unknown keys are refused.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    params: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<FileRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    circom: Option<WrittenCircom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<FileRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<WrittenKey>,
    #[serde(default)]
    limits: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCircom {
    r1cs: FileRef,
    wasm: FileRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    sym: Option<FileRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKey {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
}

impl From<&Manifest> for Written {
    fn from(manifest: &Manifest) -> Self {
        let Manifest { name, files, params, limits } = manifest.clone();
        let (component, circom) = match files.program {
            Program::Component(component) => (Some(component), None),
            Program::Circom { r1cs, wasm, sym } => (None, Some(WrittenCircom { r1cs, wasm, sym })),
        };
        let (mut key, mut keys) = (None, vec![]);
        for Key { name, file } in files.keys {
            match name.is_empty() {
                true => key = Some(file),
                false => keys.push(WrittenKey { name, file: file.file, blake3: file.blake3 }),
            }
        }
        Self { name, params, component, circom, key, keys, limits }
    }
}

impl Manifest {
    /// Read a manifest and check what can be checked without its files.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MANIFEST_BYTES_MAX {
            return Err(format!("the manifest has {} bytes; the limit is {MANIFEST_BYTES_MAX}", text.len()));
        }
        let written: Written = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        check_name("name", &written.name)?;
        let program = match (written.component, written.circom) {
            (Some(component), None) => Program::Component(component),
            (None, Some(WrittenCircom { r1cs, wasm, sym })) => Program::Circom { r1cs, wasm, sym },
            (None, None) => return Err("missing field `component`, or `circom` for what circom makes".into()),
            (Some(_), Some(_)) => return Err("give `component` or `circom`, not both".into()),
        };
        if matches!(program, Program::Circom { .. }) && !written.params.is_empty() {
            return Err("params: a circom circuit has no parameters".into());
        }
        let keys = keys(written.key, written.keys)?;
        let files = Files { program, keys };
        files.iter().try_for_each(|(what, file)| file.check(what))?;
        let manifest = Self { name: written.name, files, params: written.params, limits: written.limits };
        manifest.limits()?;
        Ok(manifest)
    }

    /// As it would be written.
    pub fn to_text(&self) -> String {
        toml::to_string(&Written::from(self)).expect("it was read from TOML, so TOML can hold it")
    }

    /// The limits, defaults included.
    pub fn limits(&self) -> Result<Limits, String> {
        let mut limits = Limits::default();
        self.limits.iter().try_for_each(|(name, value)| limits.set(name, *value))?;
        Ok(limits)
    }
}

fn keys(only: Option<FileRef>, several: Vec<WrittenKey>) -> Result<Vec<Key<FileRef>>, String> {
    let keys = match (only, several) {
        (Some(file), several) if several.is_empty() => return Ok(vec![Key { name: String::new(), file }]),
        (None, several) if !several.is_empty() => several,
        (None, _) => return Err("missing field `key`, or `[[keys]]` for several".into()),
        (Some(_), _) => return Err("give `key` or `[[keys]]`, not both".into()),
    };
    if keys.len() > KEYS_MAX {
        return Err(format!("keys: there are {}, the limit is {KEYS_MAX}", keys.len()));
    }
    for (index, key) in keys.iter().enumerate() {
        check_name("keys: name", &key.name)?;
        if keys[..index].iter().any(|other| other.name == key.name) {
            return Err(format!("keys: `{}` is there twice", key.name));
        }
    }
    let key = |WrittenKey { name, file, blake3 }| Key { name, file: FileRef { file, blake3 } };
    Ok(keys.into_iter().map(key).collect())
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain) {
        return Ok(());
    }
    let name = name.escape_debug();
    Err(format!("{what} `{name}`: expected 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`"))
}

impl<F> Files<F> {
    /// All of them, with what they are.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &F)> {
        let program = match &self.program {
            Program::Component(component) => [Some(("component", component)), None, None],
            Program::Circom { r1cs, wasm, sym } => {
                [Some(("circom.r1cs", r1cs)), Some(("circom.wasm", wasm)), sym.as_ref().map(|sym| ("circom.sym", sym))]
            }
        };
        program.into_iter().flatten().chain(self.keys.iter().map(|key| ("key", &key.file)))
    }

    /// The same files in another way.
    pub fn try_map<G, E>(&self, mut change: impl FnMut(&str, &F) -> Result<G, E>) -> Result<Files<G>, E> {
        let program = match &self.program {
            Program::Component(component) => Program::Component(change("component", component)?),
            Program::Circom { r1cs, wasm, sym } => Program::Circom {
                r1cs: change("circom.r1cs", r1cs)?,
                wasm: change("circom.wasm", wasm)?,
                sym: sym.as_ref().map(|sym| change("circom.sym", sym)).transpose()?,
            },
        };
        let key = |key: &Key<F>| Ok(Key { name: key.name.clone(), file: change("key", &key.file)? });
        Ok(Files { program, keys: self.keys.iter().map(key).collect::<Result<_, E>>()? })
    }
}

impl FileRef {
    /// The digest that it is named or checked by.
    pub fn digest(&self) -> Option<crate::Digest> {
        self.blake3.as_ref()?.parse().ok()
    }

    fn check(&self, what: &str) -> Result<(), String> {
        if let Some(digest) = &self.blake3 {
            digest.parse::<crate::Digest>().map_err(|error| format!("{what}: {error}"))?;
        }
        match &self.file {
            None if self.blake3.is_none() => Err(format!("{what}: give `file`, or `blake3` of an uploaded file")),
            Some(file) if !is_plain_name(file) => {
                Err(format!("{what}: `{}` is no plain file name of the manifest's folder", file.escape_debug()))
            }
            _ => Ok(()),
        }
    }
}

/// A manifest names no file outside its folder.
fn is_plain_name(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == file)
}

#[cfg(test)]
mod tests {
    use super::{Manifest, Program};

    fn check_refused(text: &str, parts: &[&str]) {
        let error = Manifest::parse(text).unwrap_err();
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }

    #[test]
    fn a_manifest_is_read_and_mistakes_in_it_get_a_sentence() {
        let files = "component = { file = \"a.wasm\" }\nkey = { file = \"a.zkimage\" }\n";
        let manifest = Manifest::parse(&format!("name = \"a\"\n{files}[limits]\nassign_time = 5")).unwrap();
        assert_eq!(manifest.limits().unwrap().assign_time.as_secs(), 5);
        let manifest = Manifest { params: "{\"a\": \"\\n\u{7f}'\"}\n".into(), ..manifest };
        assert_eq!(Manifest::parse(&manifest.to_text()).unwrap(), manifest);
        check_refused(&format!("name = \"a\"\nnmae = 1\n{files}"), &["unknown field `nmae`", "expected one of"]);
        check_refused(&format!("name = \"../a\"\n{files}"), &["name `../a`", "letters"]);
        check_refused(&format!("name = \"a\"\n{files}[limits]\nmemory = 5"), &["no limit `memory`", "memory_bytes"]);
        let outside = "name = \"a\"\nkey = { file = \"k\" }\ncomponent = { file = \"../../etc/passwd\" }";
        check_refused(outside, &["component", "no plain file name"]);
        let neither = "name = \"a\"\nkey = { file = \"k\" }\ncomponent = {}";
        check_refused(neither, &["component: give `file`, or `blake3`"]);
        let short = "name = \"a\"\nkey = { blake3 = \"12\" }\ncomponent = { file = \"c\" }";
        check_refused(short, &["key: `12` is no digest", "64 hexadecimal"]);
    }

    #[test]
    fn several_keys_have_names_of_their_own() {
        let component = "name = \"a\"\ncomponent = { file = \"a.wasm\" }\n";
        let key = |name: &str| format!("[[keys]]\nname = \"{name}\"\nfile = \"{name}.zkimage\"\n");
        let manifest = Manifest::parse(&[component, &key("new"), &key("old")].concat()).unwrap();
        let names: Vec<_> = manifest.files.keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["new", "old"]);
        assert_eq!(Manifest::parse(&manifest.to_text()).unwrap(), manifest);
        check_refused(component, &["missing field `key`", "[[keys]]"]);
        check_refused(
            &format!("{component}key = {{ file = \"k\" }}\n{}", key("a")),
            &["`key` or `[[keys]]`, not both"],
        );
        check_refused(&[component, &key("a"), &key("a")].concat(), &["keys: `a` is there twice"]);
        check_refused(&[component, &key("a:b")].concat(), &["keys: name `a:b`"]);
        let many: String = (0..17).map(|index| key(&index.to_string())).collect();
        check_refused(&[component, &many].concat(), &["there are 17, the limit is 16"]);
    }

    #[test]
    fn a_circom_circuit_has_constraints_and_a_module_in_place_of_a_component() {
        let text = "name = \"a\"\nkey = { file = \"a.zkey\" }\ncircom = { r1cs = { file = \"a.r1cs\" }, wasm = { file = \"a.wasm\" } }\n";
        let manifest = Manifest::parse(text).unwrap();
        assert!(matches!(manifest.files.program, Program::Circom { sym: None, .. }));
        assert_eq!(
            manifest.files.iter().map(|(what, _)| what).collect::<Vec<_>>(),
            ["circom.r1cs", "circom.wasm", "key"]
        );
        check_refused(&format!("{text}component = {{ file = \"a\" }}"), &["`component` or `circom`, not both"]);
        check_refused(&format!("{text}params = \"{{}}\""), &["a circom circuit has no parameters"]);
        check_refused("name = \"a\"\nkey = { file = \"k\" }", &["missing field `component`", "`circom`"]);
        check_refused(&text.replace("a.r1cs", "/a.r1cs"), &["circom.r1cs", "no plain file name"]);
        check_refused(&text.replace("wasm =", "module ="), &["unknown field `module`", "`wasm`"]);
    }
}
