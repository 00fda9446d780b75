//! The portable side of a binding: one JSON file a work item, so that it moves machines by copying the file.
//!
//! Owns `portable/<slug>.json`: the conversations of a work item, never its pane, which means something on one machine
//! only. The database is the truth; a file is adopted at start when the database does not know its work item.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::Inbox;
use crate::core::session::{Binding, Conversation};
use crate::core::work_item::WorkItem;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Portable {
    work_item: WorkItem,
    conversations: Vec<Conversation>,
}

/// Writes the file of a work item, or removes it when nothing is bound. The change is there whole or not at all.
pub fn save(directory: &Path, work_item: &WorkItem, binding: Option<&Binding>) -> anyhow::Result<()> {
    let path = directory.join(format!("{}.json", work_item.slug()));
    let Some(binding) = binding.filter(|binding| !binding.conversations.is_empty()) else {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        };
    };
    let portable = Portable { work_item: work_item.clone(), conversations: binding.conversations.clone() };
    let temporary = path.with_extension("json.new");
    let mut file =
        fs::File::create(&temporary).with_context(|| format!("{} could not be written", temporary.display()))?;
    serde_json::to_writer_pretty(&mut file, &portable)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&temporary, &path).with_context(|| format!("{} could not be written", path.display()))
}

/// Adopts the files of work items that the database does not know. A file that cannot be read is said and passed over.
pub async fn adopt(inbox: &Inbox, directory: &Path) -> anyhow::Result<usize> {
    let known = inbox.bindings().await?;
    let mut adopted = 0;
    for entry in fs::read_dir(directory).with_context(|| format!("{} could not be read", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let portable: Portable =
            match fs::read(&path).map_err(anyhow::Error::from).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)) {
                Ok(portable) => portable,
                Err(error) => {
                    warn!(path = %path.display(), %error, "a portable binding could not be read; it is passed over");
                    continue;
                }
            };
        if known.iter().any(|binding| binding.work_item == portable.work_item) {
            continue;
        }
        for conversation in portable.conversations {
            // What was said before is the other machine's: here it would be delivered a second time.
            let conversation = Conversation { read_to: Timestamp::now(), ..conversation };
            inbox.bind(&portable.work_item, None, Some(conversation)).await?;
        }
        adopted += 1;
    }
    Ok(adopted)
}
