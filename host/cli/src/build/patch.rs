//! A strict reader of unified diffs: what a patch removes or keeps must stand exactly where it says.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// Apply a patch to the files under `folder`. Nothing is written unless every hunk fits its file.
pub fn apply(patch: &str, folder: &Path) -> Result<()> {
    let mut lines = patch.lines().peekable();
    let mut files = Vec::new();
    while let Some(line) = lines.next() {
        // Prose may stand before the first file.
        let Some(old) = line.strip_prefix("--- ") else { continue };
        let new =
            lines.next().and_then(|line| line.strip_prefix("+++ ")).context("a `---` line without its `+++` line")?;
        let name = new.strip_prefix("b/").with_context(|| format!("`{new}` does not start with b/"))?;
        let path = folder.join(name);
        let text = match path.exists() {
            true => std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?,
            false => String::new(),
        };
        let mut file = File { old: text.lines().collect(), taken: 0, new: String::new() };
        while let Some(header) = lines.next_if(|line| line.starts_with("@@ ")) {
            let hunk = Hunk::parse(header).with_context(|| format!("`{header}` is no hunk header"))?;
            file.apply(&hunk, &mut lines).with_context(|| format!("{old}, {header}"))?;
        }
        file.keep_until(file.old.len());
        files.push((path, file.new));
    }
    for (path, text) in files {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Where a hunk applies: `@@ -start,old +_,new @@`.
struct Hunk {
    start: usize,
    old: usize,
    new: usize,
}

impl Hunk {
    fn parse(header: &str) -> Option<Self> {
        let mut words = header.split(' ').skip(1);
        let (start, old) = Self::range(words.next()?.strip_prefix('-')?)?;
        let (_, new) = Self::range(words.next()?.strip_prefix('+')?)?;
        Some(Hunk { start, old, new })
    }

    /// `start,count`, or `start` for one line.
    fn range(text: &str) -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    }
}

struct File<'a> {
    old: Vec<&'a str>,
    /// Lines of `old` that are dealt with.
    taken: usize,
    new: String,
}

impl File<'_> {
    fn apply<'a>(&mut self, hunk: &Hunk, lines: &mut impl Iterator<Item = &'a str>) -> Result<()> {
        // An empty range names the line after which it stands, any other the line at which it starts, from 1.
        let start = if hunk.old == 0 { hunk.start } else { hunk.start.saturating_sub(1) };
        ensure!((self.taken..=self.old.len()).contains(&start), "the hunk starts outside the file");
        self.keep_until(start);
        let (mut old, mut new) = (hunk.old, hunk.new);
        while old > 0 || new > 0 {
            let line = lines.next().context("the patch ends within a hunk")?;
            let (kind, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            if kind != "+" {
                ensure!(old > 0 && self.old.get(self.taken) == Some(&text), "line {} is not `{text}`", self.taken + 1);
                (self.taken, old) = (self.taken + 1, old - 1);
            }
            match kind {
                " " | "+" => {
                    new = new.checked_sub(1).context("the hunk has more lines than its header says")?;
                    self.push(text);
                }
                "-" => {}
                other => bail!("a line of a hunk starts with `{other}`"),
            }
        }
        Ok(())
    }

    fn keep_until(&mut self, line: usize) {
        for at in self.taken..line {
            let text = self.old[at];
            self.push(text);
        }
        self.taken = line;
    }

    fn push(&mut self, line: &str) {
        self.new.push_str(line);
        self.new.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::apply;

    const BEFORE: &str = "one\ntwo\nthree\nfour\n";

    /// The file `a` after a patch of it, or the error.
    fn check(patch: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, BEFORE).unwrap();
        let outcome = apply(patch, folder.path());
        let after = std::fs::read_to_string(path).unwrap();
        outcome.map(|()| after.clone()).map_err(|error| {
            assert_eq!(after, BEFORE, "a patch that does not fit changes nothing");
            format!("{error:#}")
        })
    }

    #[test]
    fn lines_are_replaced_added_and_removed() {
        let patch = "why\n\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@ head\n one\n-two\n+2\n+2.5\n@@ -4 +5,0 @@\n-four\n";
        assert_eq!(check(patch).as_deref(), Ok("one\n2\n2.5\nthree\n"));
    }

    #[test]
    fn a_new_file_is_made() {
        let folder = tempfile::tempdir().unwrap();
        apply("--- a/new\n+++ b/new\n@@ -0,0 +1,2 @@\n+x\n+y\n", folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("new")).unwrap(), "x\ny\n");
    }

    #[test]
    fn a_patch_for_another_text_is_refused() {
        let error = check("--- a/a\n+++ b/a\n@@ -1,2 +1,1 @@\n one\n-deux\n").unwrap_err();
        assert!(error.contains("line 2 is not `deux`"), "{error}");
    }

    #[test]
    fn malformed_patches_are_refused() {
        for hunk in ["@@ -1,2 +1,2 @@\n one\n", "@@ -9,1 +9,1 @@\n-x\n+y\n", "@@ rubbish\n", "@@ -1 +1 @@\n*one\n"] {
            check(&format!("--- a/a\n+++ b/a\n{hunk}")).unwrap_err();
        }
    }
}
