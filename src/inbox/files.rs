//! What usher knows of the files that it saved.
//!
//! Owns the table `file`: a file on disk is used again only when it is in here and its bytes still have this hash. It
//! must not read or write files.

use rusqlite::{OptionalExtension as _, params};

use super::{Inbox, Pending, from_json, to_json};
use crate::core::attachment::{Attachment, Source};
use crate::core::work_item::WorkItem;

/// A file that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Its name below the work item's directory.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// How it was told.
    pub attachment: Attachment,
}

impl Inbox {
    /// The file that was saved for a platform's id, if one was.
    pub fn known_file(&self, source: Source, id: &str, work_item: &WorkItem) -> Pending<Option<KnownFile>> {
        let key = (source_name(source), id.to_owned(), work_item.to_string());
        self.read(move |db| {
            let sql =
                "SELECT name, size, sha256, attachment FROM file WHERE source = ?1 AND id = ?2 AND work_item = ?3";
            let found = db.prepare_cached(sql)?.query_row(params![key.0, key.1, key.2], |row| {
                let size = u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
                Ok(KnownFile {
                    name: row.get(0)?,
                    size,
                    sha256: row.get(2)?,
                    attachment: from_json(3, row.get_ref(3)?.as_str()?)?,
                })
            });
            found.optional()
        })
    }

    /// Remembers a saved file.
    pub fn remember_file(&self, work_item: &WorkItem, file: KnownFile) -> Pending<()> {
        let work_item = work_item.to_string();
        self.write(move |db| {
            db.prepare_cached(
                "INSERT OR REPLACE INTO file (source, id, work_item, name, attachment, size, sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                source_name(file.attachment.source),
                file.attachment.id,
                work_item,
                file.name,
                to_json(&file.attachment)?,
                i64::try_from(file.size).unwrap_or(i64::MAX),
                file.sha256
            ])?;
            Ok(())
        })
    }
}

const fn source_name(source: Source) -> &'static str {
    match source {
        Source::Slack => "slack",
        Source::GitHub => "github",
    }
}
