//! The bindings of the workspace's build.
#![allow(
    clippy::all,
    non_upper_case_globals,
    non_camel_case_types,
    non_snake_case,
    unused
)]

include!(concat!(env!("OUT_DIR"), "/package.rs"));
