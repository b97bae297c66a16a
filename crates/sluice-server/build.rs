//! Has the console embedded anew when it was built anew.
//!
//! Building it is not done here: `make start` or npm does it, and a build without
//! Node still works.

fn main() {
    const BUILT: &str = "../../console/dist";
    // A folder that is missing would count as changed each time. One that cannot
    // be made is no trouble: then there is nothing to embed.
    let _ = std::fs::create_dir_all(BUILT);
    println!("cargo::rerun-if-changed={BUILT}");
}
