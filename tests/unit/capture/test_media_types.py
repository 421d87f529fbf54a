from __future__ import annotations

import pytest

from provml_lightning.capture.media_types import media_type


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("last.ckpt", "application/x-pytorch"),
        ("model.PT", "application/x-pytorch"),
        ("metrics.parquet", "application/vnd.apache.parquet"),
        ("weights.safetensors", "application/x-safetensors"),
        ("config.yaml", "application/yaml"),
        ("main.py", "text/x-python"),
        ("plot.png", "image/png"),
        ("data.json", "application/json"),
        ("data.csv.gz", "application/gzip"),
        ("data.tar.xz", "application/x-xz"),
        ("data:text,x.csv", "text/csv"),
        ("http://x/y.csv", "text/csv"),
        ("no suffix", "application/octet-stream"),
        ("v1.2", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_the_suffix_tells_the_media_type(name: str, expected: str) -> None:
    assert media_type(name) == expected
