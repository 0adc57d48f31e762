//! Key images: proving keys as files that are mapped, not read.
//!
//! Little-endian. Page 0 is the header: dimensions, table of sections, the hash of the hashes, and the header's own hash.
//! The hashes follow, then the sections, each from a page boundary and padded with zeros to the next: the verifying key as
//! `.vk`, the densities, and the queries in the layout of [`crate::points`]. Every section is hashed in chunks of 1 MiB,
//! padding included, so that damage is found, and told, when the image is opened.
//!
//! The hashes are no signature: an image is as trustworthy as who wrote it.

use crate::formats::{DecodeError, ExportError, Problem, Reader, read_vk, write_vk};
use crate::key::{HBasis, KeyError, Phase2, ProvingKey, RootGenerator, Section, check_verifying_key};
use crate::points::Point;
use crate::r1cs::ShapeHash;
use bytemuck::Pod;
use memmap2::Mmap;
use rayon::prelude::*;
use std::{fs::File, io, io::Write, ops::Range, sync::Arc};

const FORMAT: &str = "key image";
const MAGIC: &[u8; 16] = b"zkhost key image";
const VERSION: u32 = 1;
const PAGE_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 1 << 20;
const HASH_BYTES: usize = 32;

/// The sections, in order.
const SECTIONS: [&str; 8] =
    ["verifying key", "A density", "B density", "A query", "B query in G1", "B query in G2", "H query", "L query"];

/// Why an image was not opened or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file system failed.
    #[error("cannot read or write the key image")]
    Io(#[from] io::Error),
    /// The file is damaged or of another kind.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The key in it is refused.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Its verifying key has no encoding.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// What the header says.
struct Header {
    proven: bool,
    root: RootGenerator,
    h_basis: HBasis,
    log2_domain: u32,
    public_count: u32,
    aux_count: u32,
    shape: ShapeHash,
    /// Bytes of each section, without padding.
    section_bytes: [u64; SECTIONS.len()],
    /// The hash of the chunks' hashes.
    hashes_hash: [u8; HASH_BYTES],
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(PAGE_BYTES);
        page.extend_from_slice(MAGIC);
        let root = match self.root {
            RootGenerator::Seven => 7,
            RootGenerator::Five => 5,
        };
        let basis = match self.h_basis {
            HBasis::Monomial => 0,
            HBasis::QuotientPoints => 1,
            HBasis::OddCoset => 2,
        };
        let words = [VERSION, self.proven.into(), root, basis, self.log2_domain, self.public_count, self.aux_count];
        words.iter().for_each(|word: &u32| page.extend_from_slice(&word.to_le_bytes()));
        page.extend_from_slice(&self.shape.0);
        self.section_bytes.iter().for_each(|bytes| page.extend_from_slice(&bytes.to_le_bytes()));
        page.extend_from_slice(&self.hashes_hash);
        page.resize(PAGE_BYTES - HASH_BYTES, 0);
        let hash = blake3::hash(&page);
        page.extend_from_slice(hash.as_bytes());
        page
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut file = Reader::new(FORMAT, "header", bytes);
        let page = file.take(PAGE_BYTES as u64)?;
        let mut reader = Reader::new(FORMAT, "header", page);
        let magic = reader.array::<16>()?.escape_ascii().to_string();
        reader.expect("the tag", MAGIC.escape_ascii().to_string(), magic)?;
        let version = reader.u32_le()?;
        reader.expect("the version (images of other versions are made again from the key)", VERSION, version)?;
        let (body, hash) = page.split_at(PAGE_BYTES - HASH_BYTES);
        if blake3::hash(body).as_bytes() != hash {
            return Err(reader.error(None, Problem::Damaged));
        }
        let proven = one_of(&mut reader, "the mark of a proven binding", [(0, false), (1, true)])?;
        let roots = [(7, RootGenerator::Seven), (5, RootGenerator::Five)];
        let root = one_of(&mut reader, "the generator of the root of unity", roots)?;
        let bases = [(0, HBasis::Monomial), (1, HBasis::QuotientPoints), (2, HBasis::OddCoset)];
        let h_basis = one_of(&mut reader, "the basis of H", bases)?;
        let log2_domain = reader.u32_le()?;
        let (public_count, aux_count) = (reader.u32_le()?, reader.u32_le()?);
        let shape = ShapeHash(reader.array()?);
        let mut section_bytes = [0; SECTIONS.len()];
        for bytes in &mut section_bytes {
            *bytes = reader.u64_le()?;
        }
        let hashes_hash = reader.array()?;
        Ok(Self { proven, root, h_basis, log2_domain, public_count, aux_count, shape, section_bytes, hashes_hash })
    }

    /// Where the hashes, the sections and the file end; none if the header's sizes are impossible.
    fn layout(&self) -> Option<Layout> {
        let padded = self.section_bytes.iter().map(|&bytes| bytes.checked_next_multiple_of(PAGE_BYTES as u64));
        let padded: Vec<u64> = padded.collect::<Option<_>>()?;
        let chunks: u64 = padded.iter().map(|bytes| bytes.div_ceil(CHUNK_BYTES as u64)).sum();
        let hashes = PAGE_BYTES..PAGE_BYTES.checked_add(usize::try_from(chunks).ok()?.checked_mul(HASH_BYTES)?)?;
        let mut end = hashes.end.checked_next_multiple_of(PAGE_BYTES)?;
        let mut sections = vec![];
        for bytes in padded {
            let start = end;
            end = start.checked_add(usize::try_from(bytes).ok()?)?;
            sections.push(start..end);
        }
        Some(Layout { hashes, sections, end })
    }
}

/// One of the values that a field may have.
fn one_of<T, const N: usize>(reader: &mut Reader, what: &'static str, values: [(u32, T); N]) -> Result<T, DecodeError> {
    let found = reader.u32_le()?;
    let expected = values.iter().map(|(code, _)| code.to_string()).collect::<Vec<_>>().join(" or ");
    let value = values.into_iter().find(|(code, _)| *code == found).map(|(_, value)| value);
    value.ok_or_else(|| reader.error(None, Problem::Unexpected { what, expected, found: found.to_string() }))
}

/// Where things lie in the file; sections with their padding.
struct Layout {
    hashes: Range<usize>,
    sections: Vec<Range<usize>>,
    end: usize,
}

/// Write a key as an image.
pub fn write_image(key: &ProvingKey, mut out: impl Write) -> Result<(), ImageError> {
    let mut vk = vec![];
    write_vk(&key.vk, &mut vk)?;
    let sections: [&[u8]; SECTIONS.len()] = [
        &vk,
        bytemuck::cast_slice(&key.a_density),
        bytemuck::cast_slice(&key.b_density),
        bytemuck::cast_slice(&key.a),
        bytemuck::cast_slice(&key.b_g1),
        bytemuck::cast_slice(&key.b_g2),
        bytemuck::cast_slice(&key.h),
        bytemuck::cast_slice(&key.l),
    ];
    let hashes = sections.map(hash_chunks).concat();
    let header = Header {
        proven: key.proven,
        root: key.root,
        h_basis: key.h_basis,
        log2_domain: key.log2_domain,
        public_count: key.public_count,
        aux_count: key.aux_count,
        shape: key.shape,
        section_bytes: sections.map(|bytes| bytes.len() as u64),
        hashes_hash: blake3::hash(&hashes).into(),
    };
    out.write_all(&header.encode())?;
    write_padded(&hashes, &mut out)?;
    sections.iter().try_for_each(|bytes| write_padded(bytes, &mut out))?;
    Ok(out.flush()?)
}

fn write_padded(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(bytes)?;
    out.write_all(&[0; PAGE_BYTES][..bytes.len().next_multiple_of(PAGE_BYTES) - bytes.len()])
}

/// The hashes of a section's chunks, the last one padded to a page.
fn hash_chunks(section: &[u8]) -> Vec<u8> {
    let hash = |chunk: &[u8]| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(chunk);
        hasher.update(&[0; PAGE_BYTES][..chunk.len().next_multiple_of(PAGE_BYTES) - chunk.len()]);
        <[u8; HASH_BYTES]>::from(hasher.finalize())
    };
    section.par_chunks(CHUNK_BYTES).map(hash).collect::<Vec<_>>().concat()
}

/// Map an image and check all of it: truncation, damage, identities where none may be, sizes that disagree.
///
/// The file must not be written to while the key is in use; whoever replaces an image renames a new one over it.
pub fn open_image(file: &File, phase2: Phase2) -> Result<ProvingKey, ImageError> {
    // SAFETY: the mapping is private and read-only. As for every mapped file, that nobody changes the file meanwhile is
    // its owner's duty, stated above; this project's own writers only ever rename finished files into place.
    let map = Arc::new(unsafe { Mmap::map(file)? });
    let header = Header::decode(&map)?;
    let layout = check_damage(&map, &header)?;

    let bytes = |index: usize| {
        let start = layout.sections[index].start;
        start..start + header.section_bytes[index] as usize
    };
    let words = |index| -> Result<Vec<u64>, DecodeError> {
        let words = bytemuck::try_cast_slice(&map[bytes(index)]).map_err(|_| partial(index))?;
        check_density(words, &header).map_err(|problem| located(index, problem))?;
        Ok(words.to_vec())
    };
    let key = ProvingKey {
        vk: read_vk(&map[bytes(0)])?,
        shape: header.shape,
        proven: header.proven,
        root: header.root,
        log2_domain: header.log2_domain,
        h_basis: header.h_basis,
        public_count: header.public_count,
        aux_count: header.aux_count,
        a_density: words(1)?,
        b_density: words(2)?,
        a: mapped(&map, bytes(3), 3)?,
        b_g1: mapped(&map, bytes(4), 4)?,
        b_g2: mapped(&map, bytes(5), 5)?,
        h: mapped(&map, bytes(6), 6)?,
        l: mapped(&map, bytes(7), 7)?,
    };
    key.check_sections()?;
    check_verifying_key(&key.vk, phase2)?;
    no_identity(3, &key.a)?;
    no_identity(4, &key.b_g1)?;
    no_identity(5, &key.b_g2)?;
    Ok(key)
}

fn located(index: usize, problem: Problem) -> DecodeError {
    DecodeError { format: FORMAT, section: SECTIONS[index], index: None, problem }
}

/// The error of a section that does not divide into its elements.
fn partial(index: usize) -> DecodeError {
    located(index, Problem::PartialEntry)
}

fn mapped<T: Pod>(map: &Arc<Mmap>, bytes: Range<usize>, index: usize) -> Result<Section<T>, DecodeError> {
    Section::mapped(Arc::clone(map), bytes).ok_or_else(|| partial(index))
}

/// Compare the file's length and every hash with what the header says.
fn check_damage(map: &[u8], header: &Header) -> Result<Layout, DecodeError> {
    let reader = Reader::new(FORMAT, "header", map);
    let layout = header.layout().ok_or_else(|| reader.error(None, Problem::Damaged))?;
    if map.len() < layout.end {
        let missing = (layout.end - map.len()) as u64;
        // The first section that is cut.
        let cut = layout.sections.iter().position(|section| section.end > map.len());
        let section = cut.map_or("hashes", |index| SECTIONS[index]);
        return Err(DecodeError { section, ..reader.error(None, Problem::Truncated { missing }) });
    }
    if map.len() > layout.end {
        let bytes = (map.len() - layout.end) as u64;
        return Err(DecodeError { section: "end", ..reader.error(None, Problem::Trailing { bytes }) });
    }
    let hashes = &map[layout.hashes.clone()];
    let padding = &map[layout.hashes.end..layout.sections[0].start];
    if blake3::hash(hashes) != header.hashes_hash || padding.iter().any(|&byte| byte != 0) {
        return Err(DecodeError { section: "hashes", ..reader.error(None, Problem::Damaged) });
    }
    let mut expected = hashes;
    for (index, range) in layout.sections.iter().enumerate() {
        let found = hash_chunks(&map[range.clone()]);
        let (own, rest) = expected.split_at(found.len());
        let differs = |(a, b)| a != b;
        if let Some(chunk) = own.chunks(HASH_BYTES).zip(found.chunks(HASH_BYTES)).position(differs) {
            let first = (chunk * CHUNK_BYTES) as u64;
            let last = (first + CHUNK_BYTES as u64).min(range.len() as u64) - 1;
            return Err(located(index, Problem::DamagedRange { first, last }));
        }
        expected = rest;
    }
    Ok(layout)
}

/// A density has a bit for every variable and no other.
fn check_density(words: &[u64], header: &Header) -> Result<(), Problem> {
    let variables = 1 + u64::from(header.public_count) + u64::from(header.aux_count);
    let (expected, found) = (variables.div_ceil(64), words.len() as u64);
    if expected != found {
        let (expected, found) = (expected.to_string(), found.to_string());
        return Err(Problem::Unexpected { what: "the number of words", expected, found });
    }
    match words.last() {
        Some(last) if !variables.is_multiple_of(64) && last >> (variables % 64) != 0 => Err(Problem::Damaged),
        _ => Ok(()),
    }
}

fn no_identity<P: Point>(index: usize, points: &[P]) -> Result<(), KeyError> {
    match points.par_iter().position_first(Point::is_infinity) {
        Some(at) => Err(KeyError::Identity { what: format!("{}, entry {at},", SECTIONS[index]) }),
        None => Ok(()),
    }
}
