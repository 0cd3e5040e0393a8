//! The hosts of a job and the ranks on each: the words of a command line, or the lines of a file.

use cobre_comm::MAX_RANKS;

/// A host and the number of ranks that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name as the remote shell takes it, with `user@` if there is one.
    pub name: String,
    /// Most ranks on it.
    pub slots: usize,
}

impl Host {
    /// The name without the user.
    pub(crate) fn address(&self) -> &str {
        self.name
            .rsplit_once('@')
            .map_or(&self.name, |(_, name)| name)
    }
}

/// The hosts of a job, in the order of their ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostList(Vec<Host>);

impl HostList {
    /// Reads `a:8,b:8`; a host without a number takes one rank.
    ///
    /// # Errors
    /// The text of a word that is no host.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::new(text.split(',').map(|word| host(word.trim())))
    }

    /// Reads the lines of a host file: `a:8`, `a slots=8` or `a`; `#` begins a comment.
    ///
    /// # Errors
    /// The text of a line that is no host, with its number.
    pub fn parse_file(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            let described = |why| format!("line {}: {why}", number + 1);
            (!line.is_empty()).then(|| line_of_file(line).map_err(described))
        });
        Self::new(lines)
    }

    fn new(hosts: impl Iterator<Item = Result<Host, String>>) -> Result<Self, String> {
        let mut all: Vec<Host> = Vec::new();
        for host in hosts {
            let host = host?;
            // One connection per host, whatever the order in which it is named.
            match all.iter_mut().find(|known| known.name == host.name) {
                Some(known) => known.slots += host.slots,
                None => all.push(host),
            }
        }
        let total: usize = all.iter().map(|host| host.slots).sum();
        match total {
            0 => Err("there is no host".to_owned()),
            1..=MAX_RANKS => Ok(Self(all)),
            _ => Err(format!(
                "{total} ranks in all; {MAX_RANKS} are the most of a job"
            )),
        }
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.0
    }

    /// The ranks of all hosts.
    pub fn slots(&self) -> usize {
        self.0.iter().map(|host| host.slots).sum()
    }

    /// The hosts that `ranks` ranks fill from the first on; all if there are fewer slots.
    #[must_use]
    pub fn filled(&self, ranks: usize) -> Self {
        let mut left = ranks;
        let hosts = self.0.iter().filter_map(|host| {
            let slots = host.slots.min(left);
            left -= slots;
            let name = host.name.clone();
            (slots > 0).then_some(Host { name, slots })
        });
        Self(hosts.collect())
    }

    /// The hosts without those of these names.
    #[must_use]
    pub fn without(&self, names: &[String]) -> Self {
        let kept = self.0.iter().filter(|host| !names.contains(&host.name));
        Self(kept.cloned().collect())
    }
}

/// A host as one word: `name`, `name:8`, `user@name:8`, `[::1]:8`.
fn host(word: &str) -> Result<Host, String> {
    let (name, slots) = match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(slots) => (address, Some(slots)),
            None => return Err(expected(word)),
        },
        None if is_ipv6(word) => {
            return Err(format!(
                "{word:?}: an address with colons is expected in brackets, such as [{word}]:8"
            ));
        }
        None => match word.split_once(':') {
            Some((name, slots)) => (name, Some(slots)),
            None => (word, None),
        },
    };
    checked(name, slots, word)
}

fn line_of_file(line: &str) -> Result<Host, String> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    match (words.next(), words.next()) {
        (None, _) => host(first),
        (Some(second), None) => match second.strip_prefix("slots=") {
            Some(slots) => checked(first, Some(slots), line),
            None => Err(expected(line)),
        },
        _ => Err(expected(line)),
    }
}

/// A name that no remote shell takes for an option, and no shell for anything else.
fn checked(name: &str, slots: Option<&str>, whole: &str) -> Result<Host, String> {
    let (user, host) = match name.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, name),
    };
    if !user.is_none_or(is_word) || !(is_word(host) || is_ipv6(host)) {
        return Err(expected(whole));
    }
    let slots = slots.map_or(Some(1), |slots| slots.parse().ok());
    let slots = slots.filter(|slots| (1..=MAX_RANKS).contains(slots));
    let slots = slots.ok_or_else(|| {
        format!("{whole:?}: the ranks of a host are a number from 1 to {MAX_RANKS}")
    })?;
    let name = name.to_owned();
    Ok(Host { name, slots })
}

/// True for the name of a user or a host that is one word to every program, and no option.
fn is_word(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(letter)
}

/// True for an address with colons, with the interface that it belongs to if there is one.
fn is_ipv6(name: &str) -> bool {
    let (address, interface) = match name.split_once('%') {
        Some((address, interface)) => (address, Some(interface)),
        None => (name, None),
    };
    address.parse::<std::net::Ipv6Addr>().is_ok() && interface.is_none_or(is_word)
}

fn expected(found: &str) -> String {
    format!(
        "{found:?}: a host is expected, with its number of ranks behind a colon, such as node-1:8"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(list: &HostList) -> Vec<(&str, usize)> {
        let hosts = list.hosts().iter();
        hosts.map(|host| (host.name.as_str(), host.slots)).collect()
    }

    #[test]
    fn hosts_have_one_rank_unless_a_number_is_given() {
        let list = HostList::parse("a:8,me@b,[::1]:2,a").unwrap();
        assert_eq!(named(&list), [("a", 9), ("me@b", 1), ("::1", 2)]);
        assert_eq!(list.hosts()[1].address(), "b");
        assert_eq!(named(&list.filled(10)), [("a", 9), ("me@b", 1)]);
        assert_eq!(list.without(&["a".to_owned()]).slots(), 3);
    }

    #[test]
    fn a_file_has_comments_and_slots() {
        let list = HostList::parse_file("# all\nnode-1 slots=4 # fast\n\nnode-2:2\nnode-3\n");
        let list = list.unwrap();
        assert_eq!(named(&list), [("node-1", 4), ("node-2", 2), ("node-3", 1)]);
        let error = HostList::parse_file("a\nb c d\n").unwrap_err();
        assert!(error.starts_with("line 2"), "{error}");
    }

    #[test]
    fn what_could_be_an_option_or_a_command_is_no_host() {
        for text in [
            "-oProxyCommand=x",
            "a;b",
            "a b:2",
            "",
            "a:0",
            "a:x",
            "a:257",
            "a:200,b:200",
            "$(x)",
            "me@-oProxyCommand=x",
            "me@-x",
            "-l@a",
            "@a",
            "a@",
            "a@b@c",
            "[::1]2",
            "[::1]:",
            "[a b]",
            "a,,b",
        ] {
            assert!(HostList::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong_with_the_host() {
        for (text, words) in [
            ("a:0", "from 1 to 256"),
            ("a:99999999999999999999", "from 1 to 256"),
            ("fe80::1", "[fe80::1]:8"),
            ("a b", "a host is expected"),
        ] {
            let error = HostList::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        for text in [
            "a slots=0",
            "a:2 slots=3",
            "a slots=2 max_slots=4",
            "# none",
        ] {
            assert!(HostList::parse_file(text).is_err(), "{text}");
        }
        let list = HostList::parse_file("fe80::1%eth0 slots=2\r\nme@a\r\na\n").unwrap();
        assert_eq!(named(&list), [("fe80::1%eth0", 2), ("me@a", 1), ("a", 1)]);
    }
}
