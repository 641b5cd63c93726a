//! `partita completions` and `partita manual`: what packages install beside the program, made from its own flags.

use std::fs;
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

pub fn completions(flags: &CompletionsFlags, mut program: Command) -> Result<(), String> {
    let name = program.get_name().to_owned();
    clap_complete::generate(flags.shell, &mut program, name, &mut std::io::stdout());
    Ok(())
}

/// One page for the program and one for each of its commands: `partita.1`, `partita-serve.1`.
pub fn manual(flags: &ManualFlags, program: Command) -> Result<String, String> {
    let failed =
        |error: std::io::Error| format!("can't write pages to {}: {error}", flags.directory.display());
    fs::create_dir_all(&flags.directory).map_err(failed)?;
    clap_mangen::generate_to(program, &flags.directory).map_err(failed)?;
    Ok(format!("wrote the manual to {}", flags.directory.display()))
}
