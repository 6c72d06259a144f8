//! Frozen at compile time by a macro that does not watch its folder: this does.

fn main() {
    println!("cargo::rerun-if-changed=standins");
    println!("cargo::rerun-if-changed=build.rs");
}
