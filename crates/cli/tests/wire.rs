//! Every case of `conformance/wire/*.http`, against the real binary.

use crate::support::{Client, Partita, root, transcript};

#[test]
fn every_transcript_is_answered_byte_for_byte() {
    let server = Partita::in_memory();
    let mut client: Client = server.client();
    let mut queue_client: Client = server.queue_client();
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("conformance/wire")).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "http"));
    files.sort();
    let only = std::env::var("WIRE").ok();
    let (mut cases, mut failures) = (0, Vec::new());
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let text = format!("\n{}", std::fs::read_to_string(&path).unwrap());
        let client = if name.starts_with("queue_") { &mut queue_client } else { &mut client };
        let (ran, failed) = transcript::run_file(client, &name, &text);
        cases += ran;
        failures.extend(failed);
    }
    assert!(cases > 0, "no case was run");
    assert!(failures.is_empty(), "{} of {cases} cases failed:\n\n{}", failures.len(), failures.join("\n\n"));
    println!("{cases} cases");
}
