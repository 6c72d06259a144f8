//! Bytes by their hash.

use std::fs;

use gimlet::store::{BlobId, Blobs, StoreError};
use gimlet_store::FileStore;

#[tokio::test]
async fn the_same_bytes_are_kept_once() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let blob = store.put(b"long text").await.unwrap();
    assert_eq!(store.put(b"long text").await.unwrap(), blob);
    assert_eq!(blob, BlobId::of(b"long text"));
    assert_eq!(store.get(&blob).await.unwrap(), b"long text");
    let dir = home.path().join("blobs").join(&blob.hex()[..2]);
    let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [blob.hex()]);

    let empty = store.put(b"").await.unwrap();
    assert_eq!(store.get(&empty).await.unwrap(), b"");
}

#[tokio::test]
async fn what_was_tampered_with_is_not_handed_out() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let blob = store.put(b"what was said").await.unwrap();
    let path = home.path().join("blobs").join(&blob.hex()[..2]).join(blob.hex());
    fs::write(&path, b"what was Said").unwrap();
    let error = store.get(&blob).await.unwrap_err();
    assert!(matches!(&error, StoreError::Backend(text) if text.contains(blob.hex())), "{error}");

    // Putting the true bytes again mends it.
    store.put(b"what was said").await.unwrap();
    assert_eq!(store.get(&blob).await.unwrap(), b"what was said");
}

#[tokio::test]
async fn an_address_nobody_put_anything_at() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let missing = BlobId::of(b"never stored");
    assert!(matches!(store.get(&missing).await, Err(StoreError::NoSuchBlob(blob)) if blob == missing));
}
