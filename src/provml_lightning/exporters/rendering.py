"""A DOT file as a picture, by the Graphviz that is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from provml_lightning.errors import ExportError, MissingExtraError
from provml_lightning.storage.index import write_whole

__all__ = ["write_svg"]

_LONGEST_COMPLAINT = 500


def write_svg(dot: Path, target: Path, *, timeout: float = 60.0) -> Path:
    """Draw a DOT file as SVG; return the file.

    Graphviz's own ``dot`` draws it where it is installed, the ``graph`` extra's program elsewhere.
    File names never reach a command line: the program reads its input and writes its output.

    Args:
        dot: A DOT file.
        target: The picture, replaced whole.
        timeout: The longest that the program may take [s].

    Raises:
        ExportError: The file cannot be read, drawn in time, or written.
        MissingExtraError: Neither program is installed.
    """
    program = _program()
    try:
        picture = _rendered(program, dot.read_bytes(), timeout)
        write_whole(target, picture)
    except OSError as error:
        raise ExportError(f"{dot} was not drawn: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise ExportError(f"{dot} was not drawn within {timeout:g} s by {program}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()[-_LONGEST_COMPLAINT:]
        raise ExportError(f"{dot} was not drawn by {program}: {said}") from error
    return target


def _program() -> str:
    scripts = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"))
    found = (
        shutil.which("dot")
        or shutil.which("graphviz-pure")
        or next(filter(None, (shutil.which("graphviz-pure", path=one) for one in scripts)), None)
    )
    if found is None:
        raise MissingExtraError(
            "graphviz-pure",
            "graph",
            "draw an SVG where Graphviz's 'dot' is not on the PATH. Install Graphviz with the"
            " system's package manager (apt install graphviz, brew install graphviz), or",
        )
    return found


def _rendered(program: str, source: bytes, timeout: float) -> bytes:
    done = subprocess.run(  # noqa: S603  a list, found by name, with no text of the user's in it
        [program, "-Tsvg"], input=source, capture_output=True, check=True, timeout=timeout
    )
    return done.stdout
