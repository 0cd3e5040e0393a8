//! Takes the library and the bindings of the workspace's build, and the constants of the package: `ci/judges/fuzz.py`
//! says where they are.

use std::path::PathBuf;

fn main() {
    let place = |variable: &str| {
        println!("cargo::rerun-if-env-changed={variable}");
        let path = std::env::var_os(variable)
            .unwrap_or_else(|| panic!("{variable} is not set: run ci/judges/fuzz.py"));
        PathBuf::from(path)
    };
    let (built, package, out) = (
        place("COBRE_HIGHS_BUILT"),
        place("COBRE_HIGHS_PACKAGE"),
        place("OUT_DIR"),
    );
    std::fs::copy(built.join("c_bindings.rs"), out.join("c_bindings.rs")).expect("the bindings");
    let text = std::fs::read_to_string(package.join("src/lib.rs")).expect("the package");
    // What is included has no attributes of a crate.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("#![") && !line.starts_with("//!"))
        .collect();
    std::fs::write(out.join("package.rs"), lines.join("\n")).expect("a file");
    for directory in ["lib", "lib64"] {
        println!(
            "cargo::rustc-link-search=native={}",
            built.join(directory).display()
        );
    }
    for library in ["static=highs", "stdc++"] {
        println!("cargo::rustc-link-lib={library}");
    }
}
