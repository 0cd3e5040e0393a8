//! The offer of rank 0 in a file of a directory that all hosts of a job see, readable by its user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::env;

/// Bytes of the longest offer.
const LONGEST: u64 = 1024;
/// Names begin with this.
const PREFIX: &str = "job-";
/// A file that is older was left by a rank 0 that was killed: no rendezvous takes as long.
const ABANDONED: Duration = Duration::from_secs(86_400);
/// The longest time between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// The file of a rank 0, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PublishedFile(PathBuf);

impl Drop for PublishedFile {
    fn drop(&mut self) {
        // It names a job whose ranks have met, or whose rank 0 has given up.
        let _ = fs::remove_file(&self.0);
    }
}

/// The directory, made if it is missing, if only this user can change what is in it. The one around it must be there: a file
/// system that is not mounted here would else be waited for in vain.
pub(super) fn directory(path: Option<PathBuf>) -> Result<PathBuf, String> {
    let variable = env::JOB_DIR;
    let path = path.ok_or_else(|| format!("set {variable} to a directory that all hosts see"))?;
    let about = |what: &dyn std::fmt::Display| format!("{} ({variable}): {what}", path.display());
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(about(&"the directory around it is not on this host"));
        }
        Err(error) if !path.is_dir() => return Err(about(&error)),
        _ => {}
    }
    let found = fs::metadata(&path).map_err(|error| about(&error))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own || found.mode() & 0o022 != 0 {
        return Err(about(
            &"other users can put files there: it must belong to this user, with mode 700",
        ));
    }
    Ok(path)
}

/// Rank 0: puts `text` where the others look for it.
pub(super) fn publish(directory: &Path, job: &str, text: &str) -> Result<PublishedFile, String> {
    sweep(directory);
    let path = directory.join(format!("{PREFIX}{job}"));
    let [high, low] = env::random_words();
    let draft = directory.join(format!("{PREFIX}{job}.{high:x}{low:x}"));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&draft);
        format!("{}: {error}", path.display())
    })?;
    Ok(PublishedFile(path))
}

/// The other ranks: the text of rank 0.
pub(super) fn find(directory: &Path, job: &str, deadline: Instant) -> Result<String, String> {
    let path = directory.join(format!("{PREFIX}{job}"));
    let mut pause = Duration::from_millis(1);
    loop {
        match read(&path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!(
                "rank 0 has left nothing in {} within the deadline: do all hosts see this directory ({})?",
                directory.display(),
                env::JOB_DIR
            ));
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(PAUSE);
        // A client of NFS that has not found a name believes so for a while, unless it lists the directory.
        let _ = fs::read_dir(directory).map(Iterator::count);
    }
}

fn read(path: &Path) -> io::Result<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file() || metadata.uid() != own || metadata.mode() & 0o077 != 0 {
        let what = "it is no file of mode 600 that belongs to this user";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Removes what was left by jobs that are long over.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_name);
        let age = entry
            .metadata()
            .ok()
            .filter(fs::Metadata::is_file)
            .and_then(|found| {
                let changed = found.modified().ok()?;
                SystemTime::now().duration_since(changed).ok()
            });
        if ours && age.is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True for names that [`publish`] gives.
fn is_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    rest.get(..32).is_some_and(env::are_digits_of_words)
        && rest[32..]
            .strip_prefix('.')
            .map_or(rest.len() == 32, digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const JOB: &str = "00112233445566778899aabbccddeeff";

    /// A directory of its own, empty at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cobre-{name}-{}", std::process::id()));
            Self(directory(Some(path)).unwrap())
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn the_text_of_rank_0_is_found_and_goes_with_it() {
        let place = Place::new("found");
        let (directory, deadline) = (place.0.clone(), Instant::now() + Duration::from_secs(20));
        let seeker = std::thread::spawn(move || find(&directory, JOB, deadline));
        let published = publish(&place.0, JOB, "hello").unwrap();
        assert_eq!(seeker.join().unwrap().unwrap(), "hello");
        drop(published);
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
    }

    #[test]
    fn a_rank_0_that_never_comes_is_an_error_with_the_directory() {
        let place = Place::new("absent");
        let error = find(&place.0, JOB, soon()).unwrap_err();
        assert!(
            error.contains(env::JOB_DIR) && error.contains("absent"),
            "{error}"
        );
    }

    #[test]
    fn what_others_can_read_or_change_is_refused() {
        let place = Place::new("open");
        let published = publish(&place.0, JOB, "hello").unwrap();
        fs::set_permissions(&published.0, fs::Permissions::from_mode(0o644)).unwrap();
        let error = find(&place.0, JOB, soon()).unwrap_err();
        assert!(error.contains("mode 600"), "{error}");
        drop(published);
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
        let error = directory(Some(place.0.clone())).unwrap_err();
        assert!(error.contains("mode 700"), "{error}");
    }

    #[test]
    fn a_directory_of_a_file_system_that_is_not_mounted_is_not_made() {
        let place = Place::new("mounted");
        let missing = place.0.join("shared");
        let error = directory(Some(missing.join("jobs"))).unwrap_err();
        assert!(error.contains("is not on this host"), "{error}");
        assert!(!missing.exists());
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let place = Place::new("link");
        let link = place.0.join(format!("{PREFIX}{JOB}"));
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(find(&place.0, JOB, soon()).is_err());
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn only_files_of_abandoned_jobs_are_swept() {
        let place = Place::new("swept");
        let names = [
            format!("{PREFIX}{JOB}"),
            format!("{PREFIX}{JOB}.1f"),
            "job-notes".to_owned(),
        ];
        for name in &names {
            let file = File::create(place.0.join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        let young = place.0.join(format!("{PREFIX}{}", JOB.replace('0', "1")));
        File::create(&young).unwrap();
        sweep(&place.0);
        let left = fs::read_dir(&place.0).unwrap().flatten();
        let mut left: Vec<_> = left.map(|entry| entry.path()).collect();
        left.sort();
        assert_eq!(left, [young, place.0.join("job-notes")]);
        for path in left {
            fs::remove_file(path).unwrap();
        }
    }
}
