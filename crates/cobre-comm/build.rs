//! The portable build: that of every system but Linux, and of Linux with `--cfg cobre_portable`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "linux") {
        println!("cargo::rustc-cfg=cobre_portable");
    }
}
