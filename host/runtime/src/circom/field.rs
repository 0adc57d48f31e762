//! Faster arithmetic in Fr for circom's modules.
//!
//! Every module that circom's compiler writes carries the same functions for the field, generated once for each prime. They
//! work in words of 32 bits, as WebAssembly had no wider product; they are most of a witness's time. Before a module is
//! compiled, those of its functions that are known here get bodies of ours, which compute the same in words of 64 bits by
//! the proposal of wide arithmetic. What they write is the same for operands below 2^256, reduced or not, where result and operands are
//! one or apart; circom's words of scratch memory, which nothing else reads, are not written.
//!
//! A function is known by its digest, over its type, its body, and the digests of the functions that it calls, so that one
//! that differs in anything is left as it is. The sandbox is what it was: our bodies are WebAssembly of the same module. All that
//! the digest does not cover is the modulus, which circom's functions read from memory and ours do not: a module that
//! overwrites it gets another witness than it would have, and its witnesses are checked as anybody's.

use std::collections::HashMap;
use wasm_encoder::{CodeSection, Function, InstructionSink, MemArg, Module, RawSection, ValType as Local};
use wasmparser::{
    BinaryReaderError, CompositeInnerType, FuncType, FunctionBody, Operator, Parser, Payload, TypeRef, ValType,
};
use zkhost_groth16::scalar::MODULUS;

/// A function of circom's that is replaced.
struct Known {
    /// What circom calls it.
    name: &'static str,
    /// What [`digest`] gives of it.
    digest: &'static str,
    /// What takes its place.
    ours: fn() -> Function,
}

/// They are the same in modules of circom 2.0.6 and 2.2.3.
const KNOWN: [Known; 4] = [
    Known { name: "Fr_F1m_add", digest: "b4bab236c730524a0c420fc90fd426565f8bf042a8fdc4e5661cdb0ad6ddaaa7", ours: sum },
    Known {
        name: "Fr_F1m_sub",
        digest: "dac267eb3b2ea0e509fde5d90735ea6ea45e7b0144f6d4591fba6240117448e9",
        ours: difference,
    },
    Known {
        name: "Fr_F1m_mul",
        digest: "831d5c6b96fc2aefb96f5e20552b5589106a7c4c95bf5e17d76ed9215a43f28a",
        ours: product,
    },
    Known {
        name: "Fr_F1m_fromMontgomery",
        digest: "52930bab4838a3bd98efaf816e112c6885c8d7d6d780232427d273525d73259c",
        ours: from_montgomery,
    },
];

/// Words of 64 bits in an element.
const WORDS: usize = 4;
/// -r^-1 modulo 2^64.
const INVERSE: u64 = 0xffff_fffe_ffff_ffff;

/// A witness module with our arithmetic.
pub struct Widened {
    /// The module, in the binary format.
    pub module: Vec<u8>,
    /// The functions that were replaced: index and circom's name for it. None in a module that is not circom's.
    pub replaced: Vec<(u32, &'static str)>,
}

/// Give a witness module our arithmetic. It is for the scalar field of BLS12-381 alone, and circom's functions may be the same for
/// another: whoever runs the result asks it for its modulus first. What makes it invalid is found here only as far as it keeps a function from being
/// found; whoever compiles the result validates it.
pub fn widen(module: &[u8]) -> Result<Widened, BinaryReaderError> {
    let Functions { imported, bodies } = functions(module)?;
    let mut widened = Module::new();
    let mut replaced = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        if !matches!(payload, Payload::CodeSectionStart { .. }) {
            widened.section(&RawSection { id, data: &module[range] });
            continue;
        }
        let mut code = CodeSection::new();
        for (index, (body, digest)) in (imported..).zip(&bodies) {
            let known = digest.and_then(|digest| KNOWN.iter().find(|known| *digest.to_hex() == *known.digest));
            match known {
                Some(known) => {
                    replaced.push((index, known.name));
                    code.function(&(known.ours)())
                }
                None => code.raw(body.as_bytes()),
            };
        }
        widened.section(&code);
    }
    Ok(Widened { module: widened.finish(), replaced })
}

/// A module's functions.
struct Functions<'a> {
    imported: u32,
    /// The others, each with its digest if it has one.
    bodies: Vec<(FunctionBody<'a>, Option<blake3::Hash>)>,
}

fn functions(module: &[u8]) -> Result<Functions<'_>, BinaryReaderError> {
    let mut types = Vec::new();
    let mut imported = 0;
    let mut declared = Vec::new();
    let mut bodies = Vec::new();
    let mut digests = HashMap::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section {
                    types.extend(group?.into_types().map(|ty| match ty.composite_type.inner {
                        CompositeInnerType::Func(ty) => Some(ty),
                        _ => None,
                    }));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::FunctionSection(section) => declared = section.into_iter().collect::<Result<_, _>>()?,
            Payload::CodeSectionEntry(body) => {
                let ty = declared.get(bodies.len()).and_then(|ty| types.get(*ty as usize)?.as_ref());
                let digest = match ty {
                    Some(ty) => digest(ty, &body, &digests)?,
                    None => None,
                };
                if let Some(digest) = digest {
                    digests.insert(imported + bodies.len() as u32, digest);
                }
                bodies.push((body, digest));
            }
            _ => {}
        }
    }
    Ok(Functions { imported, bodies })
}

/// The digest of a function, for one that depends on nothing but its operands, memory, and functions before it that have a
/// digest.
fn digest(
    ty: &FuncType,
    body: &FunctionBody<'_>,
    digests: &HashMap<u32, blake3::Hash>,
) -> Result<Option<blake3::Hash>, BinaryReaderError> {
    let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 functions of circom's modules");
    for values in [ty.params(), ty.results()] {
        hasher.update(&[values.len() as u8]);
        for value in values {
            match value {
                ValType::I32 => hasher.update(b"i"),
                ValType::I64 => hasher.update(b"l"),
                _ => return Ok(None),
            };
        }
    }
    let mut operators = body.get_operators_reader()?;
    let bytes = |from: usize, to: usize| &body.as_bytes()[from - body.range().start..to - body.range().start];
    hasher.update(bytes(body.range().start, operators.original_position()));
    while !operators.eof() {
        let start = operators.original_position();
        match operators.read()? {
            Operator::Call { function_index } => match digests.get(&function_index) {
                // The operator's own byte, as every other begins with one.
                Some(callee) => hasher.update(&[0x10]).update(callee.as_bytes()),
                None => return Ok(None),
            },
            Operator::CallIndirect { .. } | Operator::GlobalGet { .. } | Operator::GlobalSet { .. } => return Ok(None),
            _ => hasher.update(bytes(start, operators.original_position())),
        };
    }
    Ok(Some(hasher.finalize()))
}

/// The locals of a body: its parameters, which are addresses, and words behind them.
struct Body {
    function: Function,
    /// The element that is being made, least word first.
    t: [u32; WORDS],
    /// Words of an operand, or the element less the modulus.
    u: [u32; WORDS],
    /// What is above `t`: words 4 and 5.
    high: u32,
    top: u32,
    factor: u32,
    carry: u32,
    /// A choice, 32 bits.
    keep: u32,
}

impl Body {
    fn new(parameters: u32) -> Self {
        let word = |index| parameters + index;
        Body {
            function: Function::new([(12, Local::I64), (1, Local::I32)]),
            t: [0, 1, 2, 3].map(word),
            u: [4, 5, 6, 7].map(word),
            high: word(8),
            top: word(9),
            factor: word(10),
            carry: word(11),
            keep: word(12),
        }
    }

    fn code(&mut self) -> InstructionSink<'_> {
        self.function.instructions()
    }

    /// Read the element at the address in `pointer`.
    fn load(&mut self, pointer: u32, words: [u32; WORDS]) {
        for (index, word) in words.into_iter().enumerate() {
            self.code().local_get(pointer).i64_load(at(index)).local_set(word);
        }
    }

    /// What lies on the stack, 128 bits, more by a word.
    fn add(&mut self, word: u32) {
        self.code().local_get(word).i64_const(0).i64_add128();
    }

    /// Reduce by one word, as Montgomery does: t = (t + m r) / 2^64, where m makes the lowest word vanish.
    fn reduce_word(&mut self) {
        let Body { t, factor, carry, .. } = *self;
        self.code().local_get(t[0]).i64_const(INVERSE as i64).i64_mul().local_set(factor);
        for index in 0..WORDS {
            self.code().local_get(factor).i64_const(MODULUS[index] as i64).i64_mul_wide_u();
            self.add(t[index]);
            if index > 0 {
                self.add(carry);
            }
            self.code().local_set(carry);
            match index {
                0 => self.code().drop(),
                _ => self.code().local_set(t[index - 1]),
            };
        }
    }

    /// Write t, or t - r if t with the word above it is not below r, to the address in `pointer`; and end.
    fn store_reduced(mut self, pointer: u32) -> Function {
        let Body { t, u, high, carry, keep, .. } = self;
        // The carry is the borrow here: 0 or -1.
        for index in 0..WORDS {
            self.code().local_get(t[index]).i64_const(0);
            self.code().i64_const(MODULUS[index] as i64).i64_const(0).i64_sub128();
            if index > 0 {
                self.code().local_get(carry).local_get(carry).i64_add128();
            }
            self.code().local_set(carry).local_set(u[index]);
        }
        self.code().local_get(high).local_get(carry).i64_add().i64_const(0).i64_lt_s().local_set(keep);
        for index in 0..WORDS {
            self.code().local_get(pointer).local_get(t[index]).local_get(u[index]);
            self.code().local_get(keep).select().i64_store(at(index));
        }
        self.code().end();
        self.function
    }
}

/// The word of this index of an element.
fn at(index: usize) -> MemArg {
    MemArg { offset: 8 * index as u64, align: 3, memory_index: 0 }
}

/// `Fr_F1m_mul` (x, y, to): x y 2^-256 modulo r, word by word of x (Koç, Acar and Kaliski, "Analyzing and Comparing Montgomery
/// Multiplication Algorithms", IEEE Micro 1996: coarsely integrated operand scanning).
fn product() -> Function {
    let (x, y, to) = (0, 1, 2);
    let mut body = Body::new(3);
    let Body { t, u, high, top, factor, carry, .. } = body;
    body.load(y, u);
    for row in 0..WORDS {
        body.code().local_get(x).i64_load(at(row)).local_set(factor);
        for index in 0..WORDS {
            body.code().local_get(factor).local_get(u[index]).i64_mul_wide_u();
            if row > 0 {
                body.add(t[index]);
            }
            if index > 0 {
                body.add(carry);
            }
            body.code().local_set(carry).local_set(t[index]);
        }
        match row {
            0 => body.code().local_get(carry).local_set(high),
            _ => body
                .code()
                .local_get(high)
                .i64_const(0)
                .local_get(carry)
                .i64_const(0)
                .i64_add128()
                .local_set(top)
                .local_set(high),
        };
        body.reduce_word();
        body.code().local_get(high).local_get(top);
        body.add(carry);
        body.code().local_set(high).local_set(t[3]);
    }
    body.store_reduced(to)
}

/// `Fr_F1m_fromMontgomery` (x, to): x 2^-256 modulo r.
fn from_montgomery() -> Function {
    let (x, to) = (0, 1);
    let mut body = Body::new(2);
    let Body { t, carry, .. } = body;
    body.load(x, t);
    for _ in 0..WORDS {
        body.reduce_word();
        body.code().local_get(carry).local_set(t[3]);
    }
    body.store_reduced(to)
}

/// `Fr_F1m_add` (x, y, to): x + y, less r if it is not below r.
fn sum() -> Function {
    let (x, y, to) = (0, 1, 2);
    let mut body = Body::new(3);
    let Body { t, u, high, .. } = body;
    body.load(x, t);
    body.load(y, u);
    for index in 0..WORDS {
        body.code().local_get(t[index]).i64_const(0);
        body.add(u[index]);
        if index > 0 {
            body.add(high);
        }
        body.code().local_set(high).local_set(t[index]);
    }
    body.store_reduced(to)
}

/// `Fr_F1m_sub` (x, y, to): x - y, more by r if it is below zero.
fn difference() -> Function {
    let (x, y, to) = (0, 1, 2);
    let mut body = Body::new(3);
    let Body { t, u, carry, high, .. } = body;
    body.load(x, t);
    body.load(y, u);
    for index in 0..WORDS {
        body.code().local_get(t[index]).i64_const(0).local_get(u[index]).i64_const(0).i64_sub128();
        if index > 0 {
            body.code().local_get(carry).local_get(carry).i64_add128();
        }
        body.code().local_set(carry).local_set(t[index]);
    }
    // The borrow, 0 or -1, masks the modulus.
    for index in 0..WORDS {
        body.code().local_get(t[index]).i64_const(0).local_get(carry).i64_const(MODULUS[index] as i64).i64_and();
        body.code().i64_const(0).i64_add128();
        if index > 0 {
            body.add(high);
        }
        body.code().local_set(high).local_set(t[index]);
    }
    for (index, word) in t.into_iter().enumerate() {
        body.code().local_get(to).local_get(word).i64_store(at(index));
    }
    body.code().end();
    body.function
}
