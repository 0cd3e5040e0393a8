//! Fuzz targets: cases and problems that users bring.

use std::path::Path;

use crate::template::Template;
use crate::{Boundary, Options, load, load_bounded, migrate, schemas, tables};

/// A name, the reader (of a directory that is its own, and an input), and the mutants of its corpus that a test tries.
pub type Target = (&'static str, fn(&Path, &[u8]), usize);

/// The targets.
pub fn targets() -> Vec<Target> {
    vec![
        ("case", case as _, 400),
        ("stoch_opt_format", stoch_opt_format as _, 2_000),
        ("sddp_jl_cuts", sddp_jl_cuts as _, 2_000),
    ]
}

/// A case. The first line of an input is the name of a template and the path of a file in it, the rest the content of
/// that file: any file of the format, whether the template has it or not.
fn case(place: &Path, input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n');
    let line = end.and_then(|end| std::str::from_utf8(&input[..end]).ok());
    let Some((template, file)) = line.and_then(|line| line.split_once('/')) else {
        return;
    };
    let Some(template) = Template::find(template).filter(|_| is_of_the_format(file)) else {
        return;
    };
    let directory = place.join(template.name);
    let path = directory.join(file);
    if !directory.exists() {
        template.files().write(&directory).expect("it is written");
    }
    let sound = std::fs::read(&path).ok();
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    std::fs::write(&path, &input[line.map_or(0, str::len) + 1..]).expect("it is written");
    let _ = load(&directory, &Options::default());
    let _ = migrate(&directory);
    match sound {
        Some(sound) => std::fs::write(&path, sound).expect("it is written"),
        None => std::fs::remove_file(&path).expect("it is there"),
    }
}

fn is_of_the_format(file: &str) -> bool {
    schemas().iter().any(|(known, _)| *known == file)
        || tables().iter().any(|(known, _)| {
            *known == file || Some(file) == known.replace(".parquet", ".csv").get(..)
        })
}

/// Options with a bound, which most problems need.
fn bounded() -> Options {
    Options {
        bound: Some(0.0),
        ..Options::default()
    }
}

fn stoch_opt_format(place: &Path, input: &[u8]) {
    let path = place.join("problem.sof.json");
    std::fs::write(&path, input).expect("it is written");
    let _ = load(&path, &bounded());
}

/// The cuts of SDDP.jl as the terminal value of a problem.
fn sddp_jl_cuts(place: &Path, input: &[u8]) {
    let (problem, cuts) = (place.join("problem.sof.json"), place.join("cuts.json"));
    let sound = include_bytes!("../../../examples/two_reservoirs.sof.json");
    if !problem.exists() {
        std::fs::write(&problem, sound).expect("it is written");
    }
    std::fs::write(&cuts, input).expect("it is written");
    for source_stage in [None, Some("1".to_owned())] {
        let path = cuts.clone();
        let _ = load_bounded(&problem, &bounded(), Some(&Boundary { path, source_stage }));
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
