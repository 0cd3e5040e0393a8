//! Results beside a case, never inside it.

use std::path::{Path, PathBuf};

/// The error if results of a case are to be written into its own directory.
pub fn output_inside(case: &Path, output: &Path) -> Option<String> {
    let own = case.is_dir().then(|| case.canonicalize().ok())??;
    resolved(output)?.starts_with(&own).then(|| {
        format!(
            "the output directory {} is inside the case {}: results would be taken for its files; give a directory \
             elsewhere",
            output.display(),
            case.display()
        )
    })
}

/// A path that need not exist yet, without links as far as it exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let mut rest = Vec::new();
    for ancestor in whole.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            return Some(rest.iter().rev().fold(found, |path, part| path.join(part)));
        }
        match ancestor.components().next_back()? {
            // As a system would take it once the directories are there.
            std::path::Component::ParentDir => return None,
            part => rest.push(part.as_os_str().to_owned()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_inside_the_case_is_refused_whatever_its_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let case = directory.path().join("case");
        std::fs::create_dir(&case).expect("it can be made");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&case, &link).expect("a link");
        for (output, refused) in [
            (case.clone(), true),
            (case.join("results"), true),
            (case.join("a/b"), true),
            (link.join("results"), true),
            (case.join("../case/results"), true),
            (case.join("../results"), false),
            (directory.path().join("case-results"), false),
        ] {
            let found = output_inside(&case, &output).is_some();
            assert_eq!(found, refused, "{}", output.display());
        }
    }
}
