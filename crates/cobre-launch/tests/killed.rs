//! Launcher, guard and supervisor killed, alone and together: what of the job is left. The launcher is a
//! process that this test starts and kills.

mod processes;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cobre_launch::{Launch, Output};
use processes::{unique_sleep, wait_until, with_argument};
use rustix::process::{Pid, Signal, getpgid, kill_process};

/// Nothing takes longer unless something hangs or stays.
const LIMIT: Duration = Duration::from_secs(60);
const RANKS: usize = 3;

/// Set for the process that a test starts: the number of seconds that its ranks sleep.
const MARK: &str = "COBRE_TEST_MARK";
/// Set for the same process: the script of its ranks.
const SCRIPT: &str = "COBRE_TEST_SCRIPT";

/// Processes that stay in the group of their rank: in the background, with a dead parent, with no
/// environment, without any descriptor but the death pipe.
const CLOSE: &str = "sleep $MARK & (sleep $MARK &); env -i sleep $MARK & \
                     sh -c 'exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec sleep $MARK' & ";
const CLOSE_SIZE: usize = 4;
/// Processes that leave it, one of them a daemon with an emptied environment.
const FAR: &str = "setsid sleep $MARK & (setsid sh -c 'env -i sleep $MARK & exec sleep $MARK' &); ";
const FAR_SIZE: usize = 3;

/// The launcher that the tests of this file start.
#[test]
fn launcher_of_these_tests() {
    let (Ok(mark), Ok(script)) = (std::env::var(MARK), std::env::var(SCRIPT)) else {
        return;
    };
    let launch = Launch::new("sh", RANKS)
        .args(["-c", &script])
        .env("MARK", mark)
        .output(Output::Capture { limit: 1 << 16 });
    let ended = launch.run();
    println!("ended: {ended:?}");
}

/// A running job: the launcher and those between it and the ranks.
struct Job {
    mark: String,
    launcher: Child,
    guard: Pid,
    supervisor: Pid,
    ranks: Vec<Pid>,
}

impl Job {
    /// Starts a job whose ranks run `script` and then sleep, and waits until its `size` sleepers do.
    fn start(script: &str, size: usize) -> Self {
        let mark = unique_sleep();
        let launcher = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "launcher_of_these_tests", "--nocapture"])
            .env(MARK, &mark)
            .env(SCRIPT, format!("{script} exec sleep $MARK"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("all run", LIMIT, || with_argument(&mark).len() == size);
        let only = |found: Vec<Pid>| match found[..] {
            [one] => one,
            _ => panic!("one child is expected: {found:?}"),
        };
        let guard = only(children(Pid::from_child(&launcher)));
        let supervisor = only(children(guard));
        let sleeping = with_argument(&mark);
        let mut ranks = children(supervisor);
        ranks.retain(|pid| {
            let leads = getpgid(Some(*pid)) == Ok(*pid);
            leads && sleeping.contains(&pid.as_raw_pid()) && session(*pid) == session(supervisor)
        });
        assert_eq!(ranks.len(), RANKS, "{ranks:?}");
        Self {
            mark,
            launcher,
            guard,
            supervisor,
            ranks,
        }
    }

    /// Kills them in this order, with so much time in between.
    fn kill(&self, victims: &[&str], between: Duration) {
        for (number, victim) in victims.iter().enumerate() {
            if number > 0 {
                std::thread::sleep(between);
            }
            let pid = match *victim {
                "launcher" => Pid::from_child(&self.launcher),
                "guard" => self.guard,
                _ => self.supervisor,
            };
            // Those that die with one that was killed before are gone already.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn all_end(mut self, what: &str) {
        wait_until(what, LIMIT, || with_argument(&self.mark).is_empty());
        self.launcher.wait().unwrap();
        for pid in [self.guard, self.supervisor] {
            wait_until(what, LIMIT, || !is_running(pid));
        }
    }
}

/// A test that fails leaves nothing either.
impl Drop for Job {
    fn drop(&mut self) {
        let left = with_argument(&self.mark).into_iter();
        for pid in left.filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The children of a process, whichever of its threads started them.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).unwrap();
    let lists = threads.flatten().map(|thread| {
        let list = fs::read_to_string(thread.path().join("children"));
        list.unwrap_or_default()
    });
    let numbers: String = lists.collect::<Vec<_>>().join(" ");
    let numbers = numbers.split_whitespace();
    numbers
        .filter_map(|word| Pid::from_raw(word.parse().ok()?))
        .collect()
}

/// The fields of a process's status behind its name: state, parent, group, session …
fn fields(pid: Pid) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    behind.split_whitespace().map(str::to_owned).collect()
}

fn session(pid: Pid) -> Option<String> {
    fields(pid).get(3).cloned()
}

/// True if the process is there and no zombie, which its adoptive parent may collect when it likes.
fn is_running(pid: Pid) -> bool {
    fields(pid)
        .first()
        .is_some_and(|state| state != "Z" && state != "X")
}

/// Every order of one or two of the three.
const VICTIMS: [&[&str]; 9] = [
    &["launcher"],
    &["guard"],
    &["supervisor"],
    &["launcher", "supervisor"],
    &["supervisor", "launcher"],
    &["launcher", "guard"],
    &["guard", "launcher"],
    &["guard", "supervisor"],
    &["supervisor", "guard"],
];

#[test]
fn nothing_survives_any_two_of_launcher_guard_and_supervisor() {
    let size = RANKS * (CLOSE_SIZE + FAR_SIZE + 1);
    for victims in VICTIMS {
        // The launcher that outlives both others finds what is left by its environment.
        let (script, size) = if victims.contains(&"launcher") || victims.len() == 1 {
            (format!("{CLOSE}{FAR}"), size)
        } else {
            (
                format!("{CLOSE}setsid sleep $MARK & "),
                RANKS * (CLOSE_SIZE + 2),
            )
        };
        for round in 0..if victims.len() == 1 { 2 } else { 8 } {
            let job = Job::start(&script, size);
            // So that the second also dies while it ends what the first has left.
            job.kill(victims, Duration::from_micros(300 * round));
            job.all_end(&format!("all end after {victims:?}"));
        }
    }
}

/// Launcher and supervisor die while ranks and their children are being started.
#[test]
fn nothing_survives_launcher_and_supervisor_killed_at_any_instant() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = seed;
    for _ in 0..40 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let delay = Duration::from_micros((random >> 33) % 30_000);
        let mark = unique_sleep();
        let mut launcher = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "launcher_of_these_tests", "--nocapture"])
            .env(MARK, &mark)
            .env(SCRIPT, format!("{CLOSE}{FAR} exec sleep $MARK"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let own = Pid::from_child(&launcher);
        let between = || children(own).first().copied();
        wait_until("the guard runs", LIMIT, || between().is_some());
        std::thread::sleep(delay);
        let supervisor = between().and_then(|guard| children(guard).first().copied());
        for victim in [Some(own), supervisor].into_iter().flatten() {
            let _ = kill_process(victim, Signal::KILL);
        }
        launcher.wait().unwrap();
        // What has the mark in its arguments, and what would have come to have it.
        let carried = || !with_argument(&mark).is_empty() || carries(&mark);
        wait_until("all end", LIMIT, || !carried());
    }
}

/// True if a process has the mark in its environment.
fn carries(mark: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut environments = entries.map(|entry| fs::read(entry.path().join("environ")));
    let entry = format!("MARK={mark}").into_bytes();
    environments.any(|environment| {
        let environment = environment.unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|it| it.ends_with(&entry))
    })
}

#[test]
fn all_three_killed_leave_at_most_who_left_the_group_of_his_rank() {
    for script in [CLOSE.to_owned(), format!("{CLOSE}{FAR}")] {
        let far = if script == CLOSE { 0 } else { FAR_SIZE };
        for round in 0..5 {
            let job = Job::start(&script, RANKS * (CLOSE_SIZE + far + 1));
            let mut victims = ["launcher", "guard", "supervisor"];
            victims.rotate_left(round % 3);
            let groups = job.ranks.clone();
            job.kill(&victims, Duration::ZERO);
            let close = || {
                let left = with_argument(&job.mark)
                    .into_iter()
                    .filter_map(Pid::from_raw);
                left.filter(|pid| getpgid(Some(*pid)).is_ok_and(|group| groups.contains(&group)))
                    .count()
            };
            wait_until("the groups of the ranks end", LIMIT, || close() == 0);
            let left = with_argument(&job.mark);
            println!(
                "{} of {} in sessions of their own are left",
                left.len(),
                RANKS * far
            );
            assert!(left.len() <= RANKS * far);
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            job.all_end("what was left was ended");
        }
    }
}
