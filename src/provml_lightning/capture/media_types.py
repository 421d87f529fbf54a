"""The media type of a file, from its name alone and the same on every machine."""

from __future__ import annotations

from functools import cache
from mimetypes import MimeTypes
from pathlib import PurePath

__all__ = ["media_type"]

_OWN = {
    ".arrow": "application/vnd.apache.arrow.file",
    ".ckpt": "application/x-pytorch",
    ".diff": "text/x-diff",
    ".feather": "application/vnd.apache.arrow.file",
    ".gguf": "application/x-gguf",
    ".hdf5": "application/x-hdf5",
    ".ipynb": "application/x-ipynb+json",
    ".jsonl": "application/x-ndjson",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".npy": "application/x-numpy",
    ".npz": "application/x-numpy",
    ".onnx": "application/onnx",
    ".parquet": "application/vnd.apache.parquet",
    ".patch": "text/x-diff",
    ".pickle": "application/x-python-pickle",
    ".pkl": "application/x-python-pickle",
    ".pt": "application/x-pytorch",
    ".pth": "application/x-pytorch",
    ".safetensors": "application/x-safetensors",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_PACKED = {
    "br": "application/x-brotli",
    "bzip2": "application/x-bzip2",
    "compress": "application/x-compress",
    "gzip": "application/gzip",
    "xz": "application/x-xz",
}
_UNKNOWN = "application/octet-stream"


def media_type(name: str) -> str:
    """Return the media type for a file called ``name``; of a packed file that of the packing."""
    # The suffixes alone: in a whole name "data:" or "://" would be read as a URL.
    kind, packing = _types().guess_type("x" + "".join(PurePath(name).suffixes[-2:]))
    return _PACKED.get(packing, _UNKNOWN) if packing else kind or _UNKNOWN


@cache
def _types() -> MimeTypes:
    types = MimeTypes()  # Python's own table; the machine's /etc/mime.types is not read into it
    for suffix, kind in _OWN.items():
        types.add_type(kind, suffix)
    return types
