//! `partita completions` and `partita manual`: files that packages install with the program, generated from its flags.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub struct CompletionsFlags {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManualFlags {
    /// The directory for the pages; created if missing
    directory: PathBuf,
}

/// Why there are no manual pages.
#[derive(Debug, thiserror::Error)]
#[error("can't write pages to {}: {source}; check its path and its permissions", .directory.display())]
pub struct ManualError {
    directory: PathBuf,
    source: io::Error,
}

pub fn completions(flags: &CompletionsFlags, mut program: Command) {
    let name = program.get_name().to_owned();
    clap_complete::generate(flags.shell, &mut program, name, &mut io::stdout());
}

/// One page for the program and one for each of its commands: `partita.1`, `partita-serve.1`.
pub fn manual(flags: &ManualFlags, program: Command) -> Result<String, ManualError> {
    let failed = |source| ManualError { directory: flags.directory.clone(), source };
    fs::create_dir_all(&flags.directory).map_err(failed)?;
    clap_mangen::generate_to(program, &flags.directory).map_err(failed)?;
    Ok(format!("wrote the manual to {}", flags.directory.display()))
}
