//! `cobre completions` and `cobre man`: the command line as shells complete it and as manual pages show it, from the
//! declarations that read it.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use cobre_comm::terminal;

use crate::exit;

/// Writes the completions of a shell to standard output
///
/// bash: cobre completions bash > ~/.local/share/bash-completion/completions/cobre
///
/// zsh: cobre completions zsh > a directory of $fpath, as _cobre
///
/// fish: cobre completions fish > ~/.config/fish/completions/cobre.fish
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Writes a manual page to standard output: that of the command, or of a subcommand by its page's name (cobre-run).
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The page
    #[arg(value_name = "PAGE", default_value = "cobre")]
    page: String,

    /// Lists the pages instead
    #[arg(long)]
    list: bool,
}

/// Writes the completions and returns the code to exit with.
pub(crate) fn complete(mut command: Command, args: &CompletionArgs) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "cobre", &mut text);
    write("cobre completions", &text)
}

/// Writes a page and returns the code to exit with.
pub(crate) fn man(command: Command, args: &ManArgs) -> u8 {
    let pages = pages(command);
    if args.list {
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        return write("cobre man", (names.join("\n") + "\n").as_bytes());
    }
    let Some((_, page)) = pages.into_iter().find(|(name, _)| *name == args.page) else {
        let problem = format!(
            "there is no page {}; cobre man --list shows them",
            args.page
        );
        return exit::fail(exit::USAGE, "cobre man", &problem);
    };
    let mut text = Vec::new();
    match page.render(&mut text) {
        Ok(()) => write("cobre man", &text),
        Err(error) => exit::fail(exit::IO, "cobre man", &error.to_string()),
    }
}

/// The pages of a command and of all commands below it, by name.
fn pages(mut command: Command) -> Vec<(String, Man)> {
    command.build();
    let mut found = Vec::new();
    let mut open = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|below| {
            let helps = below.get_name() == "help";
            !helps && !below.is_hide_set()
        });
        open.extend(below.map(|below| (format!("{name}-{}", below.get_name()), below.clone())));
        let page = Man::new(command)
            .title(name.to_uppercase())
            .source(concat!("cobre ", env!("CARGO_PKG_VERSION")));
        found.push((name, page));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found
}

fn write(command: &str, text: &[u8]) -> u8 {
    match terminal::say_own(&String::from_utf8_lossy(text)) {
        Ok(()) => exit::DONE,
        Err(error) => exit::fail(exit::IO, command, &error.to_string()),
    }
}
