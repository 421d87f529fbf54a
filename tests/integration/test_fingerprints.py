from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from provml_lightning.capture.fingerprints import dataset_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHOW = """
import torch
from torch.utils.data import TensorDataset
from provml_lightning.capture.fingerprints import dataset_fingerprint
print(dataset_fingerprint(TensorDataset(torch.arange(6.0), torch.arange(6)), max_bytes={}))
"""


class Held(Dataset[Any]):
    """A data set that holds ``data`` and other attributes, and must not be read by sample."""

    def __init__(self, data: Any, **others: Any) -> None:
        self.data = data
        vars(self).update(others)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        pytest.fail("a sample was read")


def _digest(dataset: Any, **limits: int) -> str:
    found = dataset_fingerprint(dataset, **limits)
    assert found is not None
    return found[0]


def test_the_digest_is_that_of_names_types_shapes_and_bytes() -> None:
    tensors = TensorDataset(torch.tensor([1.0, 2.0]), torch.tensor([[1], [255]], dtype=torch.uint8))
    expected = hashlib.sha256(
        b"tensors[0] torch.float32 [2] 2\n"
        b"\x00\x00\x80\x3f\x00\x00\x00\x40"
        b"tensors[1] torch.uint8 [2, 1] 2\n"
        b"\x01\xff"
    ).hexdigest()

    assert dataset_fingerprint(tensors) == (expected, "sha256 of tensors[0], tensors[1]")
    assert dataset_fingerprint(DataLoader(tensors, batch_size=2, shuffle=True)) == (
        expected,
        "sha256 of tensors[0], tensors[1]",
    )


@pytest.mark.parametrize("limit", [64, 40])
def test_equal_data_have_equal_digests_in_another_process(limit: int) -> None:
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    printed = subprocess.run(
        [sys.executable, "-c", SHOW.format(limit)], check=True, capture_output=True, text=True
    ).stdout

    assert printed.strip() == str(dataset_fingerprint(data, max_bytes=limit))
    assert ("blocks" in printed) == (limit < 72)


def test_one_changed_value_changes_the_digest() -> None:
    data = torch.zeros(1000)
    changed = data.clone()
    changed[500] = 1

    assert _digest(TensorDataset(data)) != _digest(TensorDataset(changed))
    assert _digest(TensorDataset(data)) != _digest(TensorDataset(data.reshape(1000, 1)))
    assert _digest(TensorDataset(data)) != _digest(TensorDataset(data.to(torch.int32)))


def test_the_layout_and_the_gradient_of_a_tensor_do_not_count() -> None:
    data = torch.arange(12.0).reshape(3, 4)

    assert _digest(TensorDataset(data)) == _digest(
        TensorDataset(data.t().contiguous().t().requires_grad_())
    )


def test_types_that_numpy_lacks_are_read_too() -> None:
    assert dataset_fingerprint(TensorDataset(torch.ones(3, dtype=torch.bfloat16)))
    assert dataset_fingerprint(TensorDataset(torch.ones(3, dtype=torch.bool)))


def test_a_subset_is_its_data_and_its_indices() -> None:
    data = TensorDataset(torch.arange(10.0))
    first, second = Subset(data, range(5)), Subset(data, [0, 1, 2, 3, 4])

    assert dataset_fingerprint(first) == dataset_fingerprint(second)
    assert dataset_fingerprint(first) is not None
    assert (dataset_fingerprint(first) or ("", ""))[1] == "sha256 of tensors[0]; indices"
    assert len({_digest(data), _digest(first), _digest(Subset(data, range(1, 6)))}) == 3
    assert _digest(Subset(first, [1])) != _digest(Subset(second, [2]))


def test_of_large_data_evenly_spaced_blocks_are_read() -> None:
    data = np.zeros((100_000, 10), dtype=np.float64)
    found = dataset_fingerprint(Held(data), max_bytes=640_000)

    # 640 000 B are 8000 rows of 80 B: 64 blocks of 125 rows
    assert found is not None
    assert found[1] == "sha256 of 64 evenly spaced blocks of 125 rows of data"
    for row in (0, 124, 99_999, 99_875):
        changed = data.copy()
        changed[row, 3] = 1
        assert _digest(Held(changed), max_bytes=640_000) != found[0]
    changed = data.copy()
    changed[200, 3] = 1  # between the first block and the second
    assert _digest(Held(changed), max_bytes=640_000) == found[0]


def test_a_file_mapped_into_memory_is_not_read_whole(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", dtype=np.uint8, mode="w+", shape=(1 << 32, 1))

    assert dataset_fingerprint(Held(mapped), max_bytes=1 << 16)


def test_a_very_long_range_of_indices_is_not_listed() -> None:
    assert dataset_fingerprint(Subset(TensorDataset(torch.zeros(1)), range(10**12)))


def test_data_and_targets_are_read_as_vision_data_sets_hold_them() -> None:
    images = np.zeros((4, 2, 2, 3), dtype=np.uint8)

    found = dataset_fingerprint(Held(images, targets=[3, 1, 2, 0], classes=["a", "b"]))

    assert found is not None
    assert found[1] == "sha256 of data, targets"
    assert found[0] != _digest(Held(images, targets=[3, 1, 2, 1]))


def test_what_cannot_be_vouched_for_has_no_digest() -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            pytest.fail("the data set was iterated")

    class Files(Dataset[Any]):
        mean = torch.zeros(3)

        def __len__(self) -> int:
            return 100

    for dataset in (
        Stream(),
        Files(),
        Held(np.zeros(2), others=[object(), object()]),
        Held(np.array([{}, {}], dtype=object)),
        Held(torch.zeros(2, device="meta")),
        [(torch.zeros(2), 1)],
        iter([1]),
        None,
        "data/train",
        {},
    ):
        assert dataset_fingerprint(dataset) is None


def test_a_list_of_numbers_or_texts_is_its_own_data() -> None:
    assert _digest(["a", "bc"]) != _digest(["ab", "c"])
    assert _digest([1, 2]) != _digest([1.0, 2.0])
    assert _digest([1, 2]) == _digest((1, 2)) == _digest(range(1, 3))
    assert _digest([1, 2**70]) != _digest([1, 2**71])
    assert _digest([1, True]) != _digest([1, 1])


def test_a_folder_data_set_is_its_list_and_the_sizes_of_its_files(tmp_path: Path) -> None:
    class Folder:
        def __init__(self, root: Path) -> None:
            self.root = str(root)
            self.samples = [(str(path), 0) for path in sorted(root.iterdir())]

        def __len__(self) -> int:
            return len(self.samples)

    for root in ("one", "two"):
        (tmp_path / root).mkdir()
        (tmp_path / root / "a.png").write_bytes(b"abc")
        (tmp_path / root / "b.png").write_bytes(b"de")
    found = dataset_fingerprint(Folder(tmp_path / "one"))

    assert found is not None
    assert found[1] == "sha256 of samples and the sizes of 2 files"
    assert dataset_fingerprint(Folder(tmp_path / "two")) == found
    (tmp_path / "two" / "b.png").write_bytes(b"def")
    assert _digest(Folder(tmp_path / "two")) != found[0]


def test_no_random_number_is_drawn() -> None:
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002

    dataset_fingerprint(DataLoader(TensorDataset(torch.zeros(1000)), shuffle=True), max_bytes=100)

    assert torch.equal(torch.get_rng_state(), state[0])
    assert random.getstate() == state[1]
    assert (np.random.get_state()[1] == state[2]).all()  # noqa: NPY002
