//! A control socket between a command and a server, where a test may do something meanwhile.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

/// Listens at this socket until the test ends. Each command, such as `checkpoint`, gets what `answer` says.
pub fn answer_at(socket: &Path, mut answer: impl FnMut(&str) -> String + Send + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut command = String::new();
            BufReader::new(&stream).read_line(&mut command).unwrap();
            let answer = answer(command.trim());
            // Who has asked may be gone.
            let _ = writeln!(stream, "{answer}");
        }
    });
}

/// Asks the server that listens at this socket. Its answer begins with `ok` or `error`.
pub fn ask(socket: &Path, command: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer.trim().to_owned()
}
