//! Compiles `walk.cc` and `value.cc` against the headers of the RocksDB that is linked, with the flags that decide the layout of its
//! classes: those of `scripts/native/rocksdb`.

use std::env;

fn main() {
    for file in ["src/walk.cc", "src/value.cc"] {
        println!("cargo:rerun-if-changed={file}");
    }
    // Told by librocksdb-sys, which has the headers also if the library itself was compiled elsewhere.
    let sources =
        env::var("DEP_ROCKSDB_CARGO_MANIFEST_DIR").expect("librocksdb-sys says where its sources are");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .file("src/walk.cc")
        .file("src/value.cc")
        .include(format!("{sources}/rocksdb/include"))
        .include(format!("{sources}/rocksdb"))
        .include(&sources)
        .flag("-include")
        .flag("cstdint")
        .warnings(false)
        .opt_level(3);
    for defined in ["LZ4", "NDEBUG"] {
        build.define(defined, "1");
    }
    for defined in [
        "HAVE_ALIGNED_NEW",
        "HAVE_UINT128_EXTENSION",
        "OS_LINUX",
        "ROCKSDB_PLATFORM_POSIX",
        "ROCKSDB_LIB_IO_POSIX",
        "ROCKSDB_SCHED_GETCPU_PRESENT",
        "ROCKSDB_AUXV_GETAUXVAL_PRESENT",
        "ROCKSDB_FALLOCATE_PRESENT",
        "ROCKSDB_RANGESYNC_PRESENT",
    ] {
        build.define(defined, None);
    }
    build.compile("partita_row_walk");
}
