//! Any bytes are a log or damage that is named; what is read folds into a state, and a log that lost its end is the
//! beginning of the same one.

use std::path::PathBuf;
use std::sync::LazyLock;

use gimlet::event::{AgentPath, Event};
use gimlet::ids::RunId;
use gimlet::state::State;
use gimlet::store::{RunLog, StoreError};
use gimlet_store::FileStore;

/// The run whose log is written anew for each input.
struct Place {
    store: FileStore,
    run: RunId,
    log: PathBuf,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let home = std::env::temp_dir().join(format!("gimlet-fuzz-log-{}", std::process::id()));
    let store = FileStore::open(&home).expect("a store");
    let run: RunId = "00000000000000000000000000".parse().expect("a run's id");
    let log = store.log_path(&run);
    std::fs::create_dir_all(log.parent().expect("a folder")).expect("a folder");
    Place { store, run, log }
});

/// Reads the bytes as a log, whole and cut. The first two bytes choose where it is cut.
pub fn run(data: &[u8]) -> &'static str {
    let Some((&[low, high], bytes)) = data.split_first_chunk() else { return "too short" };
    let whole = read(bytes);
    let cut = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() + 1);
    let head = read(&bytes[..cut]);
    match whole {
        Ok(events) => {
            let head = head.expect("the beginning of a sound log is sound");
            assert!(head.len() <= events.len(), "a cut added events");
            for (cut, whole) in head.iter().zip(&events) {
                assert_eq!(format!("{cut:?}"), format!("{whole:?}"), "a cut changed an event");
            }
            let state = State::fold(&events, &AgentPath::default());
            let _ = state.last_words();
            if events.is_empty() { "no whole line" } else { "a log" }
        }
        Err(StoreError::Corrupt { line, .. }) => {
            assert!(line >= 1 && line <= bytes.split(|byte| *byte == b'\n').count(), "damage in line {line}");
            if line == 1 { "damaged at once" } else { "damaged later" }
        }
        Err(error) => panic!("neither a log nor damage: {error}"),
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Event>, StoreError> {
    std::fs::write(&PLACE.log, bytes).expect("a file");
    match crate::RUNTIME.block_on(async { PLACE.store.load(&PLACE.run).await }) {
        Err(StoreError::NoSuchRun(_)) => Ok(Vec::new()),
        result => result,
    }
}
