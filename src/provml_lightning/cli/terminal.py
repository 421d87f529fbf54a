"""What every command prints through: names as they are, colour where it is wanted, one error line.

Whatever a document says was written by others: control characters and markup are shown, never
obeyed.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text
from typer import Exit
from typer.core import TyperGroup
from typing_extensions import override

from provml_lightning.errors import ProvMLError, RecordNotFoundError

__all__ = [
    "Commands",
    "complain",
    "console",
    "more",
    "shown",
    "survive_output",
    "title",
    "warn",
]

_UNBOUND = 10_000
_LONGEST = 300


def survive_output() -> None:
    """Let output that the stream's encoding lacks be spelled out, and a closed stream be silent."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the caller closed it: >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def console(*, errors: bool = False) -> Console:
    """Return where to print; lines are as wide as the terminal, and unbroken in a pipe."""
    stream = sys.stderr if errors else sys.stdout
    narrow = stream is not None and (stream.isatty() or "COLUMNS" in os.environ)
    return Console(
        file=stream,
        width=None if narrow else _UNBOUND,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=errors,
    )


def shown(value: object, longest: int = _LONGEST) -> Text:
    """Return a value as text in which every character is visible, cut in the middle if long."""
    text = "".join(char if char.isprintable() else _escaped(char) for char in str(value))
    if len(text) > longest:
        text = f"{text[: longest // 2]} … {text[-longest // 2 :]}"
    return Text(text, overflow="fold")


def title(text: str, amount: object = "") -> Text:
    """Return the heading of a section, with how much there is of it."""
    return Text.assemble("\n", (text, "bold"), f"  {amount}" if amount != "" else "")


def more(left_out: int) -> Text:
    """Return the line that stands for what is left out."""
    return Text(f"  … and {left_out} more (--all)", style="dim", no_wrap=True)


def complain(message: object) -> None:
    """Print one line on the error stream."""
    console(errors=True).print(Text.assemble(("error: ", "bold red"), shown(message, 2000)))


def warn(message: object) -> None:
    """Print one line on the error stream about something that is left out."""
    text = Text.assemble(("warning: ", "yellow"), shown(message, 2000))
    console(errors=True).print(text)


class Commands(TyperGroup):
    """Commands whose errors are one line: status 2 where nothing is there, 1 for all else."""

    @override
    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error of the library's is the user's to read, not a crash."""
        try:
            return super().invoke(ctx)
        except ProvMLError as error:
            complain(error)
            raise Exit(2 if isinstance(error, RecordNotFoundError) else 1) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has seen enough: no error of anyone's
                raise
            complain(error)
            raise Exit(1) from error


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
