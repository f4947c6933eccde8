//! The committed code is what the `.proto` files make. `FABRICSCOPE_REGENERATE=1` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};

use protox::prost::Message as _;

/// Set to anything to write the generated files instead of comparing them.
const REGENERATE: &str = "FABRICSCOPE_REGENERATE";

/// What is compiled; the files it imports come along.
const ROOT: &str = "fabricscope/v1/agent.proto";

/// The files that are made.
const FILES: [&str; 2] = ["fabricscope.v1.rs", "fabricscope.v1.bin"];

fn generate(crate_dir: &Path, out: &Path) {
    let set = protox::compile([ROOT], [crate_dir]).expect("the .proto files compile");
    // Comments and positions are for readers of the .proto files; reflection needs none of them.
    let mut bare = set.clone();
    bare.file.iter_mut().for_each(|file| file.source_code_info = None);
    fs::write(out.join(FILES[1]), bare.encode_to_vec()).expect("the descriptors are written");
    tonic_prost_build::configure()
        .out_dir(out)
        .emit_rerun_if_changed(false)
        .compile_fds(set)
        .expect("the code is generated");
}

#[test]
fn committed_code_is_up_to_date() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = crate_dir.join("src/generated");
    let fresh = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    generate(crate_dir, &fresh);
    for file in FILES {
        let new = fs::read(fresh.join(file)).expect("the file was generated");
        if std::env::var_os(REGENERATE).is_some() {
            fs::write(committed.join(file), &new).expect("the generated file is written");
        }
        let old = fs::read(committed.join(file)).unwrap_or_default();
        assert!(old == new, "{file} is out of date: run `{REGENERATE}=1 cargo test -p proto` and commit what changes");
    }
}

#[test]
fn every_message_field_and_value_has_a_comment_and_zero_is_unspecified() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let set = protox::compile([ROOT], [crate_dir]).expect("the .proto files compile");
    let mut seen = 0;
    for file in &set.file {
        for value in file.enum_type.iter().filter_map(|kind| kind.value.first()) {
            assert!(value.number() == 0 && value.name().ends_with("_UNSPECIFIED"), "{}", value.name());
        }
        let info = file.source_code_info.as_ref().expect("positions are kept");
        // A path of (kind, index) pairs names a declaration; an odd one is a part of it.
        for location in info.location.iter().filter(|l| !l.path.is_empty() && l.path.len() % 2 == 0) {
            // 4 message, 5 enum, 6 service in a file; 2 field in all, 8 oneof in a message.
            if matches!(location.path[0], 4..=6) && (location.path.len() == 2 || matches!(location.path[2], 2 | 8)) {
                assert!(location.leading_comments.is_some(), "{} {:?} has no comment", file.name(), location.path);
                seen += 1;
            }
        }
    }
    assert!(seen > 150, "only {seen} declarations were looked at");
}
