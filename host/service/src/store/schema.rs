//! The tables, and how those of older versions become them.

use rusqlite::Connection;

/// One step for each version: the first makes the first version's tables, each other one changes its predecessor's.
const STEPS: [&str; 3] = [
    "CREATE TABLE jobs (
         seq INTEGER PRIMARY KEY AUTOINCREMENT,
         id TEXT NOT NULL UNIQUE,
         owner TEXT NOT NULL,
         key TEXT,
         body BLOB NOT NULL,
         circuit BLOB NOT NULL,
         priority INTEGER NOT NULL,
         submitted_ms INTEGER NOT NULL,
         deadline_ms INTEGER,
         metadata TEXT,
         pinned_publics TEXT,
         state INTEGER NOT NULL,
         started_ms INTEGER,
         ended_ms INTEGER,
         failure_code TEXT,
         failure TEXT,
         proof BLOB,
         publics BLOB
     ) STRICT;
     CREATE INDEX jobs_of_state ON jobs (state, seq);
     CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
     CREATE TABLE inputs (id TEXT PRIMARY KEY, sealed BLOB NOT NULL) STRICT, WITHOUT ROWID;",
    "ALTER TABLE jobs ADD COLUMN stages TEXT;
     CREATE INDEX jobs_of_owner ON jobs (owner, seq);",
    // The file of a large input, whose salt alone is in `sealed`.
    "ALTER TABLE inputs ADD COLUMN file TEXT;",
];

/// The version of the tables that this program reads and writes.
pub const VERSION: i64 = STEPS.len() as i64;

/// Why the tables cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// They are of a newer program.
    #[error(
        "the job store has schema version {found}, this zkhost knows up to {VERSION}; use the newer zkhost that made it"
    )]
    Newer {
        /// The version found.
        found: i64,
    },
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Bring the tables to this version, each step whole or not at all.
pub fn migrate(connection: &mut Connection) -> Result<(), SchemaError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let Some(steps) = usize::try_from(found).ok().and_then(|found| STEPS.get(found..)) else {
        return Err(SchemaError::Newer { found });
    };
    for (version, step) in (found + 1..).zip(steps) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
        tracing::info!(version, "the job store has a new schema");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store as the program of a version left it, with a job that has its input, brought up to date.
    fn check_upgrade(from: usize) {
        let mut connection = Connection::open_in_memory().unwrap();
        STEPS[..from].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", from as i64).unwrap();
        let insert = "INSERT INTO jobs (id, owner, body, circuit, priority, submitted_ms, state)
                      VALUES ('a', 'o', x'00', x'01', 1, 5, 0);
                      INSERT INTO inputs (id, sealed) VALUES ('a', x'0203')";
        connection.execute_batch(insert).unwrap();
        migrate(&mut connection).unwrap();
        let query = "SELECT submitted_ms, stages, sealed, file FROM jobs JOIN inputs USING (id) WHERE id = 'a'";
        let row =
            connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
        assert_eq!(row, (5, None::<String>, vec![2u8, 3], None::<String>), "from version {from}");
        migrate(&mut connection).unwrap();
    }

    #[test]
    fn stores_of_all_previous_schemas_keep_their_jobs_and_a_newer_one_is_refused() {
        (1..STEPS.len()).for_each(check_upgrade);
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        let error = migrate(&mut connection).unwrap_err().to_string();
        assert!(error.contains(&format!("version {}", VERSION + 1)), "{error}");
    }
}
