//! The frame of iden3's binary files: `.r1cs`, `.wtns`, `.zkey`.
//!
//! Little-endian: a four-byte tag, u32 version, u32 count of sections, then sections in any order, each u32 id, u64 length
//! and its bytes. Source: iden3's `binfileutils`.

use super::{DecodeError, Problem, Reader};
use crate::scalar::{Limbs, MODULUS, limbs_from_le_bytes, limbs_to_le_bytes};
use std::io::{self, Write};

/// A kind of file.
pub struct Format {
    /// What errors call it.
    pub name: &'static str,
    /// Its first four bytes.
    pub tag: &'static [u8; 4],
    /// Its version.
    pub version: u32,
    /// The ids of its sections and what errors call them.
    pub sections: &'static [(u32, &'static str)],
}

impl Format {
    fn section(&self, id: u32) -> &'static str {
        self.sections.iter().find(|(known, _)| *known == id).map_or("unknown section", |(_, name)| name)
    }
}

/// The sections of a file.
pub struct Sections<'a> {
    format: &'static Format,
    sections: Vec<(u32, &'a [u8])>,
}

impl<'a> Sections<'a> {
    /// Take a file apart. A length that passes the file's end, 64 bits of it, is told with the section's name.
    pub fn read(format: &'static Format, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(format.name, "preamble", bytes);
        let found = reader.array::<4>()?.escape_ascii().to_string();
        reader.expect("the tag", format.tag.escape_ascii().to_string(), found)?;
        let found = reader.u32_le()?;
        reader.expect("the version", format.version, found)?;
        let count = reader.u32_le()?;
        let mut sections = vec![];
        for _ in 0..count {
            reader.section = "table of sections";
            let id = reader.u32_le()?;
            reader.section = format.section(id);
            let length = reader.u64_le()?;
            let left = reader.rest().len() as u64;
            let bytes = reader.take(length).map_err(|_| reader.error(None, Problem::SectionLength { length, left }))?;
            sections.push((id, bytes));
        }
        reader.section = "end";
        reader.end()?;
        Ok(Self { format, sections })
    }

    /// A section, if it is there; it may be there once.
    pub fn find(&self, id: u32) -> Result<Option<Reader<'a>>, DecodeError> {
        let mut found = self.sections.iter().filter(|(section, _)| *section == id);
        let Some((_, bytes)) = found.next() else { return Ok(None) };
        let reader = Reader::new(self.format.name, self.format.section(id), bytes);
        reader.expect("the number of such sections", 1, 1 + found.count())?;
        Ok(Some(reader))
    }

    /// A section that must be there.
    pub fn require(&self, id: u32) -> Result<Reader<'a>, DecodeError> {
        let missing = || Reader::new(self.format.name, self.format.section(id), &[]).error(None, Problem::NoSection);
        self.find(id)?.ok_or_else(missing)
    }
}

/// The size and the modulus of the scalar field, as headers give them.
pub fn check_field(header: &mut Reader) -> Result<(), DecodeError> {
    let bytes = header.u32_le()?;
    if bytes != 32 {
        return Err(header.error(None, Problem::OtherField));
    }
    let prime: Limbs = limbs_from_le_bytes(&header.array()?);
    if prime != MODULUS { Err(header.error(None, Problem::OtherField)) } else { Ok(()) }
}

/// As [`check_field`] reads them.
pub fn field_bytes() -> [u8; 36] {
    let mut bytes = [0; 36];
    bytes[..4].copy_from_slice(&(size_of::<Limbs>() as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&limbs_to_le_bytes(&MODULUS));
    bytes
}

/// Write a file of these sections.
pub fn write_sections(format: &Format, sections: &[(u32, &[u8])], mut out: impl Write) -> io::Result<()> {
    out.write_all(format.tag)?;
    out.write_all(&format.version.to_le_bytes())?;
    out.write_all(&(sections.len() as u32).to_le_bytes())?;
    for (id, bytes) in sections {
        out.write_all(&id.to_le_bytes())?;
        out.write_all(&(bytes.len() as u64).to_le_bytes())?;
        out.write_all(bytes)?;
    }
    out.flush()
}
