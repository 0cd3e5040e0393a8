//! Writes a policy of any size: the cuts of another again and again, each copy below the one before.
//!
//! `large_policy FROM INTO MEGABYTES`; `FROM` and `INTO` are policy directories, and the size is that of slopes and
//! intercepts in memory. `ci/policy_memory.py` measures runs that begin with such a policy.

use std::path::PathBuf;
use std::process::ExitCode;

use cobre_sddp::{Policy, SddpError, StoredCut, read_policy, write_policy};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let asked = (arguments.next(), arguments.next(), arguments.next());
    let (Some(from), Some(into), Some(megabytes)) = asked else {
        eprintln!("usage: large_policy FROM INTO MEGABYTES");
        return ExitCode::from(2);
    };
    let Some(bytes) = megabytes.to_str().and_then(|text| text.parse::<f64>().ok()) else {
        eprintln!("large_policy: a number of megabytes is expected");
        return ExitCode::from(2);
    };
    let enlarge = || -> Result<usize, SddpError> {
        let policy = enlarged(read_policy(&from)?, (1e6 * bytes) as usize);
        write_policy(&into, &policy)?;
        Ok(policy.manifest.cuts)
    };
    match enlarge() {
        Ok(cuts) => {
            println!("{cuts} cuts");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("large_policy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The policy with copies of its cuts until their numbers take so many bytes. Cuts that nothing follows stay alone: they
/// are the terminal value.
fn enlarged(mut policy: Policy, bytes: usize) -> Policy {
    let cut_bytes = 8 * (1 + policy.manifest.states.len());
    let last = policy.cuts.len() - 1;
    let once: usize = policy.cuts[..last].iter().map(Vec::len).sum();
    let copies = bytes.div_ceil(cut_bytes * once.max(1));
    let passes = policy.manifest.forward_passes as u32;
    for cuts in &mut policy.cuts[..last] {
        let first = cuts.len();
        for copy in 1..copies {
            for at in 0..first {
                let below = 1e-9 * copy as f64 * (1.0 + cuts[at].intercept.abs());
                let cut = StoredCut {
                    slot: cuts[at].slot + passes * copy as u32,
                    intercept: cuts[at].intercept - below,
                    gradient: cuts[at].gradient.clone(),
                };
                cuts.push(cut);
            }
        }
    }
    policy.manifest.iterations += copies;
    policy.manifest.cuts = policy.cuts.iter().map(Vec::len).sum();
    policy.manifest.sha256 = policy.sha256();
    policy
}
