"""Write reference/api.md from the signatures and docstrings of the public names."""

from __future__ import annotations

import inspect
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import prov4ml

__all__ = ["GROUPS", "page"]

PAGE: Final = Path(__file__).resolve().parent / "reference" / "api.md"
GROUPS: Final = {
    "A run": ("start_run", "end_run", "ProvMLLogger", "ProvMLItwinAILogger"),
    "Facts": (
        *(
            "log_param",
            "log_params",
            "log_artifact",
            "log_dataset",
            "log_model",
            "save_model_version",
        ),
        *("log_input", "log_output", "log_context", "log_execution_command", "log_source_code"),
    ),
    "Values": (
        *("log_metric", "log_metrics", "register_final_metric", "log_current_execution_time"),
        *("log_system_metrics", "log_carbon_metrics"),
        *("log_flops_per_batch", "log_flops_per_epoch"),
    ),
    "Monitors of a Trainer": ("SystemMonitor", "CarbonMonitor", "FlopsMonitor"),
    "Functions and models that record themselves": (
        *("ProvenanceTrackedFunction", "ProvenanceTrackedModel"),
        "WeightDistributionTrackedModel",
    ),
    "What a piece of code used": ("PowerMeter",),
    "Questions": (
        *("list_runs_in_proj", "list_provjson_in_proj", "list_activities", "list_entities"),
        *("list_parameters", "get_parameter", "list_metrics", "list_metric_paths", "get_metric"),
    ),
    "Choices": ("Context", "MetricsType", "CompressorType", "FoldOperation"),
}
HEAD: Final = """\
# The calls

<!-- Written by docs/write_api.py from the docstrings; change those, then run it. -->

`import prov4ml` has every name below; `import provml_lightning` has the same.
What stands after `*` is given by name.
Errors that are not Python's own are of `provml_lightning.errors`, with `ProvMLError` as their base.
"""
SECTION: Final = re.compile(r"^(Args|Attributes|Returns|Raises|Source):\n", re.MULTILINE)
ENTRY: Final = re.compile(r"^    (\w+): ((?:.|\n {8})+)", re.MULTILINE)
COLUMNS: Final = "| parameter | type | default | |\n|---|---|---|---|\n"


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(prov4ml, name)) for name in names]
    return "\n".join(parts)


def _entry(name: str, thing: Any, level: str = "###") -> str:
    if isinstance(thing, type) and issubclass(thing, StrEnum):
        members = ", ".join(f'`{member.name}` (`"{member.value}"`)' for member in thing)
        return f"### {name}\n\n{_text(inspect.getdoc(thing))}\n\n{members}\n"
    about, sections = _parsed(thing)
    parts = [f"{level} {name}", f"`{_signature(name, thing)}`", _text(about)]
    if rows := _rows(thing, dict(ENTRY.findall(sections.get("Args", "")))):
        parts.append(COLUMNS + "\n".join(rows))
    if "Returns" in sections:
        parts.append(f"Returns: {_text(sections['Returns'])}")
    raised = ENTRY.findall(sections.get("Raises", ""))
    if raised:
        parts.append("Raises:")
        parts.append("\n".join(f"- `{error}`: {_text(why)}" for error, why in raised))
    parts += [_entry(f"{name}.{call}", method, "####") for call, method in _methods(thing)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _parsed(thing: Any) -> tuple[str, dict[str, str]]:
    """Return a docstring's text, and its sections by their heading."""
    about, *rest = SECTION.split(inspect.getdoc(thing) or "")
    return about, dict(zip(rest[::2], rest[1::2], strict=True))


def _methods(thing: Any) -> list[tuple[str, Any]]:
    """Return a class's own calls; those that a base names are its documents' affair."""
    members = vars(thing).items() if isinstance(thing, type) else ()
    methods = [
        (name, method.__func__ if isinstance(method, classmethod) else method)
        for name, method in members
    ]
    return [
        (name, method)
        for name, method in methods
        if inspect.isfunction(method)
        and (not name.startswith("_") or (name == "__call__" and "Args:" in str(method.__doc__)))
        and not hasattr(method, "__override__")
    ]


def _parameters(thing: Any) -> list[inspect.Parameter]:
    found = inspect.signature(thing).parameters.values()
    return [parameter for parameter in found if parameter.name not in ("self", "cls")]


def _signature(name: str, thing: Any) -> str:
    shown: list[str] = []
    for parameter in _parameters(thing):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = _default(parameter)
        shown.append(f"{parameter.name}={default}" if default else parameter.name)
    return f"{name}({', '.join(shown)})"


def _rows(thing: Any, meanings: dict[str, str]) -> list[str]:
    rows = []
    for one in _parameters(thing):
        kind = "" if one.annotation is one.empty else f"`{one.annotation}`".replace("|", r"\|")
        default = f"`{_default(one)}`" if _default(one) else ""
        meaning = _text(meanings.get(one.name, "")).replace("|", r"\|")
        rows.append(" ".join(f"| `{one.name}` | {kind} | {default} | {meaning} |".split()))
    return rows


def _default(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if isinstance(default, StrEnum):
        return f"{type(default).__name__}.{default.name}"
    return "" if default is parameter.empty else repr(default)


def _text(docstring: str | None) -> str:
    """Return a docstring's paragraphs as Markdown, each on a line of its own."""
    paragraphs = re.split(r"\n\s*\n", (docstring or "").strip())
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def main() -> int:
    """Write the page, or with ``--check`` only tell whether it is as it would be written."""
    written = page()
    if "--check" not in sys.argv:
        PAGE.write_text(written, encoding="utf-8")
    elif PAGE.read_text("utf-8") != written:
        print(f"{PAGE} is not what the docstrings say: run python docs/write_api.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
