"""A digest of what a data set holds, at bounded cost and without drawing a sample."""

from __future__ import annotations

import hashlib
import os
import sys
from array import array
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from provml_lightning.capture.datasets import is_loader, is_subset, unwrapped
from provml_lightning.capture.foreign import attribute, class_name, is_a, length

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["dataset_fingerprint"]

_BLOCKS = 64
_MOST_STATS = 4096
_TEXT_BYTES = 128  # bytes, what a text or a path is taken to cost
_NAMED = ("data", "targets")
_ARRAYS = ("torch.Tensor", "numpy.ndarray")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class _UnknownContent(Exception):  # noqa: N818  a sign between the functions of this module
    """Something that a digest cannot vouch for."""


def dataset_fingerprint(dataset: Any, *, max_bytes: int = 64 << 20) -> tuple[str, str] | None:
    """Return the SHA-256 of what a data set holds, in hex, and how it was taken.

    Read are, with their names, types and shapes: the tensors of a TensorDataset; the attributes
    ``data`` and ``targets``; every other attribute that is a tensor, an array or a list as long
    as the data set; a tensor, an array or a list that is itself the data set; and of a folder
    data set its list ``samples`` (paths below ``root``, labels) with the files' sizes. Of a
    Subset also its indices. Where this is more than ``max_bytes``, 64 blocks of rows with equal
    distances are read, the first and the last row among them, and the method says so.

    Equal data give equal digests in any process. No sample is drawn and no random number.

    Args:
        dataset: A DataLoader, Subset, Dataset or sequence.
        max_bytes: How much may be read [B], but for single rows that are larger.

    Returns:
        The digest and the method, or None where the content is not in reach.
    """
    try:
        return _fingerprint(dataset.dataset if is_loader(dataset) else dataset, max_bytes)
    except Exception:  # noqa: BLE001  foreign objects raise anything; no digest is an answer
        return None


def _fingerprint(samples: Any, max_bytes: int) -> tuple[str, str]:
    *subsets, base = unwrapped(samples)
    digest = hashlib.sha256()
    if _has_files(base):
        method = _add_files(digest, base, max_bytes)
    else:
        method = _add_columns(digest, _columns(base), max_bytes)
    for subset in (part for part in subsets if is_subset(part)):
        method += f"; {_add_columns(digest, {'indices': subset.indices}, max_bytes)}"
    return digest.hexdigest(), f"sha256 of {method}"


def _has_files(base: Any) -> bool:
    samples = attribute(base, "samples")
    if not isinstance(samples, (list, tuple)) or not samples:
        return False
    first = samples[0]
    return (
        isinstance(first, (list, tuple)) and bool(first) and isinstance(first[0], (str, PathLike))
    )


def _columns(base: Any) -> dict[str, Any]:
    """Return the arrays and lists that hold the data set's rows, by name.

    Raises:
        _UnknownContent: There are none.
    """
    if isinstance(base, (list, tuple, range)) or is_a(base, *_ARRAYS):
        return {"rows": base}
    tensors = attribute(base, "tensors")
    if isinstance(tensors, tuple) and tensors:
        return {f"tensors[{place}]": tensor for place, tensor in enumerate(tensors)}
    rows = length(base)
    held = {
        name: value
        for name, value in sorted(vars(base).items())
        if (isinstance(value, (list, tuple)) or is_a(value, *_ARRAYS))
        and (name in _NAMED or (rows is not None and length(value) == rows))
    }
    if not held:
        raise _UnknownContent(class_name(base))
    return held


def _add_columns(digest: _Digest, columns: dict[str, Any], max_bytes: int) -> str:
    total = sum(map(_size, columns.values()))
    told = []
    for name, column in columns.items():
        rows = len(column)
        share = max_bytes if total <= max_bytes else max_bytes * _size(column) // total
        blocks = list(_blocks(rows, _size(column), share))
        digest.update(f"{name} {_kind(column)} {rows}\n".encode())
        for start, stop in blocks:
            for part in _content(column[start:stop]):
                digest.update(part)
        told.append(name if blocks == [(0, rows)] or not rows else f"{_told(blocks)} of {name}")
    return ", ".join(told)


def _told(blocks: list[tuple[int, int]]) -> str:
    return f"{len(blocks)} evenly spaced blocks of {blocks[0][1] - blocks[0][0]} rows"


def _blocks(rows: int, size: int, budget: int) -> Iterator[tuple[int, int]]:
    """Yield the rows to read: all, or as many blocks with equal distances as fit the budget."""
    if size <= budget or rows < 2:  # noqa: PLR2004  one row is a block
        yield 0, rows
        return
    fitting = max(1, budget * rows // size)
    count = min(_BLOCKS, max(2, fitting))
    each = max(1, fitting // count)
    for place in range(count):
        start = place * (rows - each) // (count - 1)
        yield start, start + each


def _size(column: Any) -> int:
    if is_a(column, *_ARRAYS):
        return int(column.nbytes)
    texts = len(column) > 0 and isinstance(column[0], str)
    return len(column) * (_TEXT_BYTES if texts else 8)


def _kind(column: Any) -> str:
    if is_a(column, "torch.Tensor"):
        return f"{column.dtype} {list(column.shape)}"
    if is_a(column, "numpy.ndarray"):
        return f"{column.dtype.str} {list(column.shape)}"
    return "list"


def _content(rows: Any) -> Iterator[bytes]:
    if is_a(rows, "torch.Tensor"):
        # As bytes, since NumPy has no bfloat16.
        flat = rows.detach().cpu().contiguous().reshape(-1)
        yield flat.view(sys.modules["torch"].uint8).numpy().tobytes()
    elif is_a(rows, "numpy.ndarray"):
        if rows.dtype.hasobject:
            raise _UnknownContent(str(rows.dtype))  # its bytes are addresses
        yield rows.tobytes()
    else:
        yield from _members(rows)


def _members(rows: Any) -> Iterator[bytes]:
    code = {frozenset({int}): "q", frozenset({float}): "d"}.get(frozenset(map(type, rows)))
    with suppress(OverflowError):  # an int of more than 64 bits is written as text
        if code:
            yield f"{code} {len(rows)}\n".encode() + array(code, rows).tobytes()
            return
    yield from map(_member, rows)


def _member(value: Any) -> bytes:
    if not isinstance(value, (bool, int, float, str, bytes)):
        raise _UnknownContent(class_name(value))
    text = f"{type(value).__name__}:{value!r}"
    return f"{len(text)}:{text}\n".encode("utf-8", "surrogatepass")


def _add_files(digest: _Digest, base: Any, max_bytes: int) -> str:
    samples: Sequence[Any] = base.samples
    blocks = list(_blocks(len(samples), len(samples) * _TEXT_BYTES, max_bytes))
    root = attribute(base, "root")
    digest.update(f"samples {len(samples)}\n".encode())
    chosen = [sample for start, stop in blocks for sample in samples[start:stop]]
    step = -(-len(chosen) // _MOST_STATS) or 1
    for place, (path, *labels) in enumerate(chosen):
        size = _file_size(path) if place % step == 0 else None
        for part in map(_member, (_below(root, path), *labels, str(size))):
            digest.update(part)
    told = "samples" if len(chosen) == len(samples) else f"{_told(blocks)} of samples"
    return f"{told} and the sizes of {-(-len(chosen) // step)} files"


def _below(root: Any, path: Any) -> str:
    file = Path(os.fspath(path))
    inside = root is not None and file.is_relative_to(root)
    return (file.relative_to(root) if inside else file).as_posix()


def _file_size(path: Any) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
