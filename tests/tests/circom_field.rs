//! The arithmetic that takes the place of circom's in its modules, beside circom's own and beside big integers: what each
//! function writes is the same, for operands below 2^256, reduced or not, and also where result and operands are one.

use num_bigint::BigUint;
use std::ops::Range;
use std::path::Path;
use wasm_encoder::{CodeSection, ExportKind, ExportSection, Module, RawSection};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};
use wasmtime::{Config, Engine, Instance, Linker, Memory, Store};
use zkhost_groth16::scalar::{MODULUS, limbs_to_le_bytes};
use zkhost_runtime::circom::{Widened, widen};

/// Addresses of three elements in memory that circom's modules leave alone until they run.
const X: u32 = 4096;
const Y: u32 = 4160;
const TO: u32 = 4224;

/// By a compiler of today, and by one before 2.0.7.
const COMPILED: [&str; 2] = ["sha256", "early"];

const NAMES: [&str; 4] = ["Fr_F1m_add", "Fr_F1m_sub", "Fr_F1m_mul", "Fr_F1m_fromMontgomery"];

fn compiled(circuit: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/circom").join(circuit).join("circuit.wasm");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `make circom-peers`", path.display()))
}

/// Where the bodies of a module's functions lie in it.
fn bodies(module: &[u8]) -> Vec<Range<usize>> {
    let payloads = Parser::new(0).parse_all(module).map(Result::unwrap);
    payloads
        .filter_map(|payload| if let Payload::CodeSectionEntry(body) = payload { Some(body.range()) } else { None })
        .collect()
}

/// Functions of a module that it does not export itself.
struct Functions {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
}

impl Functions {
    fn of(module: &[u8], replaced: &[(u32, &str)]) -> Self {
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        for (index, name) in replaced {
            exports.export(name, ExportKind::Func, *index);
        }
        let mut exporting = Module::new();
        for payload in Parser::new(0).parse_all(module).map(Result::unwrap) {
            match (&payload, payload.as_section()) {
                (Payload::ExportSection(_), _) => exporting.section(&exports),
                (_, Some((id, range))) => exporting.section(&RawSection { id, data: &module[range] }),
                _ => continue,
            };
        }
        let engine = Engine::new(Config::new().wasm_wide_arithmetic(true)).unwrap();
        let module = wasmtime::Module::new(&engine, exporting.finish()).unwrap();
        let mut linker = Linker::new(&engine);
        linker.define_unknown_imports_as_traps(&module).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        Functions { store, instance, memory }
    }

    /// What a function leaves at `to`.
    fn call(&mut self, name: &str, (x, y): (&BigUint, &BigUint), [at_x, at_y, to]: [u32; 3]) -> BigUint {
        let Functions { store, instance, memory } = self;
        for (address, value) in [(TO, &BigUint::ZERO), (at_x, x), (at_y, y)] {
            let mut bytes = value.to_bytes_le();
            bytes.resize(32, 0);
            memory.write(&mut *store, address as usize, &bytes).unwrap();
        }
        match name {
            "Fr_F1m_fromMontgomery" => {
                let function = instance.get_typed_func::<(u32, u32), ()>(&mut *store, name).unwrap();
                function.call(&mut *store, (at_x, to)).unwrap();
            }
            _ => {
                let function = instance.get_typed_func::<(u32, u32, u32), ()>(&mut *store, name).unwrap();
                function.call(&mut *store, (at_x, at_y, to)).unwrap();
            }
        }
        let mut bytes = [0; 32];
        memory.read(&*store, to as usize, &mut bytes).unwrap();
        BigUint::from_bytes_le(&bytes)
    }
}

fn modulus() -> BigUint {
    BigUint::from_bytes_le(&limbs_to_le_bytes(&MODULUS))
}

/// The same by big integers.
fn naive(name: &str, x: &BigUint, y: &BigUint) -> BigUint {
    let (r, power) = (modulus(), BigUint::from(1u8) << 256);
    let montgomery = |t: BigUint| {
        // r^-1 modulo 2^256 is r^(2^254 - 1): the group of units has exponent 2^254.
        let inverse = r.modpow(&((BigUint::from(1u8) << 254) - 1u8), &power);
        let m = (&power - (&t % &power * inverse) % &power) % &power;
        (t + m * &r) >> 256
    };
    let sum = match name {
        "Fr_F1m_add" => x + y,
        "Fr_F1m_sub" if x >= y => return x - y,
        "Fr_F1m_sub" => return (&power + x - y + r) % power,
        "Fr_F1m_mul" => montgomery(x * y),
        _ => montgomery(x.clone()),
    };
    let less = if sum >= r { sum - r } else { sum };
    less % power
}

/// Values where carries and subtractions begin or end, and some between.
fn values() -> Vec<BigUint> {
    let one = BigUint::from(1u8);
    let (r, power) = (modulus(), &one << 256);
    let mut values =
        vec![BigUint::ZERO, one.clone(), &r - 1u8, r.clone(), &r + 1u8, &r * 2u8 - 1u8, &r * 2u8, &power - 1u8];
    values.extend([&power - &r, &power - &r - 1u8, (&power % &r), (&r - 1u8) >> 1, (&r + 1u8) >> 1]);
    for bits in [31, 32, 63, 64, 127, 128, 191, 192, 254, 255] {
        values.extend([&one << bits, (&one << bits) - 1u8, &power - (&one << bits)]);
    }
    // Pseudo-random ones: powers of a generator.
    let mut value = BigUint::from(7u8);
    for index in 0..40 {
        value = value.modpow(&BigUint::from(5u8), &r);
        values.push(if index % 4 == 0 { &power - 1u8 - &value } else { value.clone() });
    }
    values
}

/// A module's functions and ours agree with each other and with big integers.
fn check(circuit: &str) {
    let module = compiled(circuit);
    let widened = widen(&module).unwrap();
    let mut theirs = Functions::of(&module, &widened.replaced);
    let mut ours = Functions::of(&widened.module, &widened.replaced);
    let values = values();
    for name in NAMES {
        for (x, y) in values.iter().flat_map(|x| values.iter().map(move |y| (x, y))) {
            let expected = naive(name, x, y);
            for place in [[X, Y, TO], [X, Y, X], [X, Y, Y]] {
                let told = || format!("{circuit}: {name} of {x:x} and {y:x} at {place:?}");
                assert_eq!(theirs.call(name, (x, y), place), expected, "circom's {}", told());
                assert_eq!(ours.call(name, (x, y), place), expected, "our {}", told());
            }
            if x == y {
                assert_eq!(ours.call(name, (x, y), [X, X, X]), expected, "{name} of {x:x} and itself in place");
            }
        }
    }
}

#[test]
fn it_is_circoms() {
    COMPILED.into_iter().for_each(check);
}

#[test]
fn every_module_of_circom_gets_it() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/circom")).unwrap() {
        let circuit = entry.unwrap().file_name().into_string().unwrap();
        let Widened { module, replaced } = widen(&compiled(&circuit)).unwrap();
        assert_eq!(replaced.iter().map(|(_, name)| *name).collect::<Vec<_>>(), NAMES, "{circuit}");
        assert!(widen(&module).unwrap().replaced.is_empty(), "{circuit}: what was replaced is not replaced again");
    }
}

/// A function of a module, and one that it calls, with one instruction changed.
#[test]
fn a_function_that_differs_in_anything_is_left_alone() {
    let module = compiled("sha256");
    let replaced = widen(&module).unwrap().replaced;
    let (bodies, (product, _)) = (bodies(&module), replaced[2]);
    let imported = 4;
    // What the product calls to subtract the modulus lies twelve functions before it.
    for (changed, left) in [(product, vec!["Fr_F1m_mul"]), (product - 12, NAMES.to_vec())] {
        let mut code = CodeSection::new();
        for (index, body) in (imported..).zip(&bodies) {
            let mut body = module[body.clone()].to_vec();
            if index == changed {
                // An addition becomes a subtraction.
                let at = body.windows(2).rposition(|pair| pair == [0x7c, 0x21] || pair == [0x7d, 0x7c]);
                body[at.unwrap()] ^= 1;
            }
            code.raw(&body);
        }
        let mut other = Module::new();
        for payload in Parser::new(0).parse_all(&module).map(Result::unwrap) {
            match (&payload, payload.as_section()) {
                (Payload::CodeSectionStart { .. }, _) => other.section(&code),
                (_, Some((id, range))) => other.section(&RawSection { id, data: &module[range] }),
                _ => continue,
            };
        }
        let names: Vec<_> = widen(&other.finish()).unwrap().replaced.into_iter().map(|(_, name)| name).collect();
        let expected: Vec<_> = NAMES.into_iter().filter(|name| !left.contains(name)).collect();
        assert_eq!(names, expected, "function {changed} differs");
    }
}

/// Whatever is in a file, replacing ends, and what was valid is still.
#[test]
fn damage_is_left_to_the_validator() {
    let module = compiled("fixture-mul2");
    let features = WasmFeatures::WASM2 | WasmFeatures::WIDE_ARITHMETIC;
    let valid = |module: &[u8]| Validator::new_with_features(features).validate_all(module).is_ok();
    assert!(valid(&module));
    let (mut state, mut still_valid) = (1u64, 0);
    for _ in 0..300 {
        let mut damaged = module.clone();
        // A linear congruential generator (Knuth, MMIX) chooses place and value.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        damaged[(state >> 33) as usize % module.len()] ^= (state >> 24) as u8;
        let Ok(widened) = widen(&damaged) else { continue };
        if valid(&damaged) {
            assert!(valid(&widened.module), "{state}");
            still_valid += 1;
        }
    }
    assert!(still_valid > 10, "{still_valid}");
}
