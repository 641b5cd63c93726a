use std::cell::Cell;
use std::sync::mpsc;
use std::thread;

use model::DateTime;
use store::CHUNK_BYTES;
use tempfile::TempDir;

use super::*;

fn object(number: u8) -> ObjectId {
    ObjectId::new(DateTime::MIN_STORED, [number; 8])
}

fn chunk(number: u8, bytes: usize) -> Vec<u8> {
    vec![number; bytes]
}

fn put(files: &ContentFiles, of: u8, number: u32, bytes: usize) -> Placed {
    files.put(object(of), number, &chunk(of, bytes), || Ok(())).unwrap()
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path().join("content")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn get(files: &ContentFiles, of: u8, number: u32) -> Option<Bytes> {
    files.get(object(of), number, true).unwrap()
}

#[test]
fn a_file_has_its_final_name_when_it_is_sealed() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    assert_eq!(put(&files, 1, 0, CHUNK_BYTES), Placed::InFile);
    assert_eq!(names(&directory), [format!("{}.new", object(1))]);
    assert!(files.are_unsynced(&[object(2), object(1)]) && !files.are_unsynced(&[object(2)]));
    assert_eq!(get(&files, 1, 0).unwrap(), chunk(1, CHUNK_BYTES), "it can be read at once");
    assert_eq!(files.bytes(), 0);
    files.seal(&[object(1), object(2)]).unwrap();
    assert_eq!(names(&directory), [object(1).to_string()]);
    assert!(files.are_unsynced(&[object(1)]), "its name may still be lost, whoever asks");
    files.note_synced(&[object(1)]);
    assert!(!files.are_unsynced(&[object(1)]));
    assert_eq!(get(&files, 1, 0).unwrap(), chunk(1, CHUNK_BYTES));
    assert_eq!(get(&files, 1, 1), None);
    assert!(files.bytes() > CHUNK_BYTES as u64);
    files.remove(&[object(1), object(2)]).unwrap();
    assert_eq!((names(&directory).len(), files.bytes()), (0, 0));
}

#[test]
fn what_is_small_far_behind_or_sealed_belongs_into_the_database() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    assert_eq!(put(&files, 1, 0, CHUNK_BYTES_MIN - 1), Placed::Elsewhere);
    assert_eq!(put(&files, 1, CHUNKS_MAX, CHUNK_BYTES), Placed::Elsewhere);
    assert_eq!(get(&files, 1, u32::MAX), None);
    assert!(names(&directory).is_empty());
    assert_eq!(put(&files, 1, 0, CHUNK_BYTES_MIN), Placed::InFile);
    files.seal(&[object(1)]).unwrap();
    assert_eq!(put(&files, 1, 1, CHUNK_BYTES), Placed::Elsewhere, "a sealed file does not change");
    assert_eq!(get(&files, 1, 0).unwrap(), chunk(1, CHUNK_BYTES_MIN));
}

#[test]
fn only_so_many_files_are_open() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    for n in 0..WRITING_MAX {
        let file = File::create(directory.path().join("any")).unwrap();
        let other = ObjectId::new(DateTime::MIN_STORED, n.to_le_bytes());
        files.unsynced.lock().insert(other, Unsynced::Draft(Arc::new(Draft::new(file))));
    }
    assert_eq!(put(&files, 77, 0, CHUNK_BYTES), Placed::Elsewhere);
    let fifth = ObjectId::new(DateTime::MIN_STORED, 5_usize.to_le_bytes());
    files.unsynced.lock().insert(fifth, Unsynced::Renamed);
    assert_eq!(put(&files, 77, 0, CHUNK_BYTES), Placed::InFile);
}

#[test]
fn an_object_is_named_before_its_file_is_there() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    let refused = files.put(object(1), 0, &chunk(1, CHUNK_BYTES), || Err(Fault::disk("no")));
    assert!(matches!(refused, Err(PutError::Failed(_))));
    assert!(names(&directory).is_empty());
}

#[test]
fn what_is_removed_before_it_is_sealed_gets_no_name() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    files.remove(&[object(1)]).unwrap();
    files.seal(&[object(1)]).unwrap();
    files.note_synced(&[object(1)]);
    assert!(names(&directory).is_empty() && !files.are_unsynced(&[object(1)]));
}

#[test]
fn what_was_not_sealed_is_not_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    put(&files, 2, 0, CHUNK_BYTES);
    files.seal(&[object(2)]).unwrap();
    drop(files);
    let files = ContentFiles::open(directory.path()).unwrap();
    assert_eq!(get(&files, 1, 0), None);
    assert_eq!(get(&files, 2, 0).unwrap(), chunk(2, CHUNK_BYTES));
    // A put that is repeated begins a new file.
    put(&files, 1, 1, CHUNK_BYTES);
    files.seal(&[object(1)]).unwrap();
    assert_eq!((get(&files, 1, 0), get(&files, 1, 1).unwrap()), (None, chunk(1, CHUNK_BYTES).into()));
}

#[test]
fn files_without_a_name_are_deleted_and_the_others_counted() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    for of in 1..=3 {
        put(&files, of, 0, CHUNK_BYTES);
    }
    files.seal(&[object(1), object(2)]).unwrap();
    fs::write(directory.path().join("content/notes.txt"), "mine").unwrap();
    let bytes = files.bytes();
    drop(files);
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 4, 0, CHUNK_BYTES);
    files.seal(&[object(4)]).unwrap();
    assert_eq!(files.survey(|of| Ok(of != object(2) && of != object(3))).unwrap(), 2);
    assert_eq!(names(&directory), [object(1).to_string(), object(4).to_string(), "notes.txt".to_owned()]);
    assert_eq!(files.bytes(), bytes, "each has half of it");
}

#[test]
fn no_file_is_deleted_while_a_checkpoint_is_taken() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    put(&files, 2, 0, CHUNK_BYTES);
    files.seal(&[object(1)]).unwrap();
    let copy = TempDir::new().unwrap();
    let (removed, go_on) = mpsc::channel();
    thread::scope(|scope| {
        let files = &files;
        let (begun, begin) = mpsc::channel();
        scope.spawn(move || {
            begin.recv().unwrap();
            files.remove(&[object(1)]).unwrap();
            removed.send(()).unwrap();
        });
        let taken = files.kept_during(|| {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
            link_all(directory.path(), copy.path()).map_err(|error| Fault::disk("not linked").because(error))
        });
        taken.unwrap();
    });
    assert_eq!(names(&copy), [object(1).to_string()], "what is not sealed is not in it");
    assert_eq!(names(&directory), [format!("{}.new", object(2))], "deleted after it");
    assert_eq!(sealed_in(copy.path()).unwrap().len(), 1);
    assert!(sealed_in(&copy.path().join("none")).unwrap().is_empty());
}

#[test]
fn no_file_goes_between_being_listed_and_being_linked() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    let all: Vec<ObjectId> =
        (0..3000_u64).map(|n| ObjectId::new(DateTime::MIN_STORED, n.to_be_bytes())).collect();
    for object in &all {
        File::create(files.sealed(*object)).unwrap();
    }
    thread::scope(|scope| {
        let (files, all) = (&files, &all);
        let removal = scope.spawn(move || files.remove(all));
        while files.sealed(all[0]).exists() {
            thread::yield_now();
        }
        // As a checkpoint that begins while files are deleted.
        while !removal.is_finished() {
            let copy = TempDir::new().unwrap();
            let linked = files.kept_during(|| {
                link_all(directory.path(), copy.path())
                    .map_err(|error| Fault::disk("not linked").because(error))
            });
            linked.unwrap();
        }
        removal.join().unwrap().unwrap();
    });
    assert!(names(&directory).is_empty());
}

#[test]
fn a_file_that_can_not_be_deleted_keeps_no_other() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    for of in 1..=5 {
        put(&files, of, 0, CHUNK_BYTES);
    }
    files.seal(&[object(1), object(2), object(3), object(4), object(5)]).unwrap();
    // No file can be deleted there.
    let stuck = [2, 4].map(|of| format!("{}.new", object(of)));
    for name in &stuck {
        fs::create_dir(directory.path().join("content").join(name)).unwrap();
    }
    files.remove(&[object(1), object(2), object(3)]).unwrap_err();
    let [second, fourth] = &stuck;
    assert_eq!(names(&directory), [second, &*object(4).to_string(), fourth, &object(5).to_string()]);
    drop(files);
    let files = ContentFiles::open(directory.path()).unwrap();
    files.survey(|_| Ok(false)).unwrap_err();
    assert_eq!(names(&directory), stuck);
    assert_eq!(files.bytes(), 0);
    assert!(files.counted.lock().is_none(), "it grew with every upload from then on");
}

#[test]
fn files_on_a_disk_of_their_own_are_copied_into_a_checkpoint() {
    // Where this is no other file system, there is nothing to see.
    let Ok(disk) = TempDir::new_in("/dev/shm") else { return };
    let (directory, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::os::unix::fs::symlink(disk.path(), directory.path().join("content")).unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    files.seal(&[object(1)]).unwrap();
    link_all(directory.path(), copy.path()).unwrap();
    drop(files);
    let files = ContentFiles::open(copy.path()).unwrap();
    assert_eq!(get(&files, 1, 0).unwrap(), chunk(1, CHUNK_BYTES));
}

#[test]
fn a_chunk_that_is_put_again_is_not_written_twice() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    files.seal(&[object(1)]).unwrap();
    drop(files);
    let files = ContentFiles::open(directory.path()).unwrap();
    assert_eq!(put(&files, 1, 0, CHUNK_BYTES), Placed::InFile);
    assert!(files.are_unsynced(&[object(1)]), "the first process may have ended before the name was synced");
    files.seal(&[object(1)]).unwrap();
    files.note_synced(&[object(1)]);
    assert!(!files.are_unsynced(&[object(1)]));
    // What is damaged there is written once more.
    let path = files.sealed(object(1));
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(put(&files, 1, 0, CHUNK_BYTES), Placed::Elsewhere);
}

#[test]
fn a_chunk_that_is_put_while_its_file_is_sealed_is_in_it_before_or_elsewhere() {
    let directory = TempDir::new().unwrap();
    let files = &ContentFiles::open(directory.path()).unwrap();
    for of in 1..=12 {
        put(files, of, 0, CHUNK_BYTES);
        thread::scope(|scope| {
            let (begun, begin) = mpsc::channel();
            let putting = scope.spawn(move || {
                for number in 1.. {
                    if put(files, of, number, CHUNK_BYTES) == Placed::Elsewhere {
                        break;
                    }
                    // It is seen once.
                    let _ = begun.send(());
                }
            });
            begin.recv().unwrap();
            files.seal(&[object(of)]).unwrap();
            let length = || fs::metadata(files.sealed(object(of))).unwrap().len();
            let sealed = length();
            putting.join().unwrap();
            assert_eq!(length(), sealed, "object {of}");
        });
        files.remove(&[object(of)]).unwrap();
    }
}
#[test]
fn what_a_failed_sync_may_have_lost_is_not_sealed_by_a_second_one() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    *files.draft_of(object(1)).unwrap().stage.write() = Stage::Lost;
    files.seal(&[object(1)]).unwrap_err();
    assert_eq!(names(&directory), [format!("{}.new", object(1))]);
}

/// A migration that goes on after a power cut.
#[test]
fn a_file_whose_object_is_named_during_a_survey_stays() {
    let directory = TempDir::new().unwrap();
    let files = ContentFiles::open(directory.path()).unwrap();
    put(&files, 1, 0, CHUNK_BYTES);
    files.seal(&[object(1)]).unwrap();
    let asked = Cell::new(0);
    let is_named_meanwhile = |_| {
        asked.set(asked.get() + 1);
        Ok(asked.get() > 1)
    };
    assert_eq!(files.survey(is_named_meanwhile).unwrap(), 0);
    assert_eq!(names(&directory), [object(1).to_string()]);
}
