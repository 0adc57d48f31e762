//! Libraries with a known fault do not come back through a lock file.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

type Version = [u64; 3];

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split(['-', '+']).next()?.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// A library, the first version without the fault, and where that was reported.
struct Denied {
    name: String,
    fixed_in: Version,
    report: String,
}

fn denied() -> Vec<Denied> {
    let text = fs::read_to_string(Path::new(ROOT).join(".ci/denied-libraries")).unwrap();
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let name = words.next()?.to_owned();
        Some(Denied { name, fixed_in: version(words.next()?)?, report: words.next()?.to_owned() })
    };
    (text.lines().filter(|text| !text.starts_with('#')))
        .map(|text| line(text).unwrap_or_else(|| panic!("a name, a version and a report were expected: {text}")))
        .collect()
}

/// What of a lock file is denied. In both kinds of lock file a package's name stands in a line before its version.
fn check(lock: &str) -> Vec<String> {
    let denied = denied();
    let (mut name, mut found) = ("", vec![]);
    for line in lock.lines().map(str::trim) {
        // Cargo: `name = "blst"`; npm: `"node_modules/snarkjs": {`.
        let npm = line.strip_prefix("\"node_modules/").and_then(|rest| rest.strip_suffix("\": {"));
        let cargo = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
        name = cargo.or(npm.and_then(|path| path.rsplit("node_modules/").next())).unwrap_or(name);
        let own = line.strip_prefix("version = \"").or_else(|| line.strip_prefix("\"version\": \""));
        let Some(own) = own.and_then(|rest| version(rest.trim_end_matches(',').trim_end_matches('"'))) else {
            continue;
        };
        let faults = denied.iter().filter(|denied| denied.name == name && own < denied.fixed_in);
        found.extend(faults.map(|denied| format!("{name} {own:?}: {}", denied.report)));
    }
    found
}

/// Every lock file that a build or a test of the project uses.
fn lock_files() -> Vec<PathBuf> {
    let circom = ["tests/circom", "tests/circom/circom-2.0.6"];
    let folders =
        ["", "guest-circuits", "benches/peers", "benches/gpu", "fuzz", "tests/arkworks"].into_iter().chain(circom);
    let names = ["Cargo.lock", "package-lock.json"];
    let paths = folders.flat_map(|folder| names.map(|name| Path::new(ROOT).join(folder).join(name)));
    paths.filter(|path| path.exists()).collect()
}

/// A version with a known soundness bug stayed in use.
#[test]
fn aligned_i1749_no_lock_file_names_a_denied_version() {
    let files = lock_files();
    assert!(files.len() >= 8, "lock files were moved: {files:?}");
    for path in files {
        assert_eq!(check(&fs::read_to_string(&path).unwrap()), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn a_denied_version_is_found_in_either_kind_of_lock_file() {
    let cargo = |version: &str| format!("[[package]]\nname = \"blst\"\nversion = \"{version}\"\n");
    assert_eq!(check(&cargo("0.3.2")).len(), 3);
    assert_eq!(check(&cargo("0.3.10")).len(), 1);
    assert!(check(&cargo("0.3.11")).is_empty());
    let npm = |version: &str| format!("    \"node_modules/snarkjs\": {{\n      \"version\": \"{version}\",\n");
    assert_eq!(check(&npm("0.6.11")).len(), 1);
    assert!(check(&npm("0.7.0")).is_empty());
}
