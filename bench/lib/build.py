"""Builds the server for the scripts that measure only it."""

import subprocess
from pathlib import Path

from . import results
from .process import Trouble


def build():
    """As ./run builds it. Returns the file."""
    script = ('. "$1/scripts/environment" && cd "$partita_root" && '
              'cargo build --release --quiet --bin partita >&2 && printf %s "$partita_bin"')
    done = subprocess.run(["bash", "-c", script, "build", str(results.ROOT)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Trouble("the build failed; with --partita, a built binary is used")
    return str(Path(done.stdout) / "partita")
