"""Values that are no paths, written as files that any tool can read; never as a pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from provml_lightning.capture.foreign import is_a
from provml_lightning.capture.places import free_name, storage_error, written_whole
from provml_lightning.domain.values import to_plain
from provml_lightning.errors import ProvMLError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_value"]

_Writer = Callable[[Any, BinaryIO], None]
_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"})


def write_value(value: Any, folder: Path, name: str) -> Path:
    """Write ``value`` to a free name in ``folder`` and return its path.

    ====================================  =========  =========================================
    value                                 suffix     written as
    ====================================  =========  =========================================
    str                                   ``.txt``   UTF-8
    bytes, bytearray, memoryview          ``.bin``   as they are
    dict, list, tuple, number, None       ``.json``  NaN and ±inf as text
    numpy.ndarray                         ``.npy``   without objects
    torch.Tensor                          ``.pt``    a plain tensor on the CPU, without gradient
    PIL.Image.Image                       ``.png``   ``.tiff`` in a mode that PNG has not
    matplotlib Figure                     ``.png``
    pandas.DataFrame, pandas.Series       ``.csv``   with their index
    anything else                         ``.txt``   its ``repr``, at most 8192 characters
    ====================================  =========  =========================================

    What its format cannot hold (an array of objects, a tensor without values) is written as its
    ``repr`` too.

    Args:
        value: Anything.
        folder: Where to write; made where it is missing.
        name: The file's name, already encoded; the suffix is added where it is not there.

    Raises:
        RecordError: ``name`` is not one name.
        StorageError: The file cannot be written.
    """
    suffix, write = _form(value)
    try:
        return _write(value, folder, name, suffix, write)
    except ProvMLError:
        raise
    except Exception:  # noqa: BLE001  a foreign writer may raise anything for what it cannot hold
        return _write(value, folder, name, ".txt", _write_repr)


def _write(value: Any, folder: Path, name: str, suffix: str, write: _Writer) -> Path:
    path = free_name(folder, name if name.endswith(suffix) else name + suffix)
    try:
        with written_whole(path) as temporary, temporary.open("xb") as file:
            write(value, file)
    except OSError as error:
        raise storage_error(path, "write it", error) from error
    return path


def _form(value: Any) -> tuple[str, _Writer]:
    if isinstance(value, str):
        return ".txt", _write_text
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ".bin", _write_bytes
    if value is None or isinstance(value, (Mapping, list, tuple, bool, int, float)):
        return ".json", _write_json
    return _foreign_form(value)


def _foreign_form(value: Any) -> tuple[str, _Writer]:
    if is_a(value, "numpy.ndarray"):
        return ".npy", _write_array
    if is_a(value, "torch.Tensor"):
        return ".pt", _write_tensor
    if is_a(value, "PIL.Image.Image"):
        return (".png" if value.mode in _PNG_MODES else ".tiff"), _write_image
    if is_a(value, "matplotlib.figure.Figure"):
        return ".png", _write_figure
    if is_a(value, "pandas.DataFrame", "pandas.Series"):
        return ".csv", _write_table
    return ".txt", _write_repr


def _write_text(value: str, file: BinaryIO) -> None:
    file.write(value.encode("utf-8", "surrogatepass"))


def _write_bytes(value: bytes | bytearray | memoryview, file: BinaryIO) -> None:
    file.write(value)


def _write_json(value: Any, file: BinaryIO) -> None:
    plain = dict(value) if isinstance(value, Mapping) else value
    text = json.dumps(plain, default=_member)
    # JSON has no NaN and no infinity, though Python writes and reads them.
    strict = json.dumps(
        json.loads(text, parse_constant=str), ensure_ascii=False, indent=2, allow_nan=False
    )
    file.write(strict.encode("utf-8", "surrogatepass"))


def _member(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    plain = to_plain(value)
    return plain.isoformat() if isinstance(plain, datetime) else plain


def _write_repr(value: Any, file: BinaryIO) -> None:
    _write_text(str(to_plain(value)), file)


def _write_array(value: Any, file: BinaryIO) -> None:
    import numpy as np

    np.save(file, value, allow_pickle=False)


def _write_tensor(value: Any, file: BinaryIO) -> None:
    from provml_lightning.capture.torch_objects import save_tensor

    save_tensor(value, file)


def _write_image(value: Any, file: BinaryIO) -> None:
    value.save(file, format="PNG" if value.mode in _PNG_MODES else "TIFF")


def _write_figure(value: Any, file: BinaryIO) -> None:
    value.savefig(file, format="png")


def _write_table(value: Any, file: BinaryIO) -> None:
    value.to_csv(file)
