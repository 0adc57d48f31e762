//! Write the Zcash Sapling proving keys, as the ceremony of 2018 made them, to a folder.
//!
//! usage: `cargo run -p sapling-keys -- FOLDER`
//!
//! The bytes come from the crate `wagyu-zcash-parameters`. Each file is the key proper followed by the ceremony's
//! transcript; `zkhost import-key` checks the whole file against a digest it knows.

use std::{env, fs, path::PathBuf};

fn main() -> anyhow::Result<()> {
    let folder = PathBuf::from(env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: sapling-keys FOLDER"))?);
    fs::create_dir_all(&folder)?;
    let (spend, output) = wagyu_zcash_parameters::load_sapling_parameters();
    for (name, bytes) in [("sapling-spend.params", spend), ("sapling-output.params", output)] {
        let path = folder.join(name);
        // A reader never sees half a key: the file appears whole or not at all.
        let partial = path.with_extension("partial");
        fs::write(&partial, bytes)?;
        fs::rename(&partial, &path)?;
        println!("{}", path.display());
    }
    Ok(())
}
