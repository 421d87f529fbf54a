from __future__ import annotations

import pytest

from provml_lightning.samplers.visible import Device, own_device, visible_devices

WHOLE = Device("GPU-aa11", 0)
PART = Device("MIG-aa11-1", 10, parent=WHOLE)
DIVIDED = Device("GPU-aa11", 0, parts=(PART,))
OTHER = Device("GPU-ab22", 1)


@pytest.mark.parametrize(
    ("text", "uuids"),
    [
        (None, ["GPU-aa11", "GPU-ab22"]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("0", ["GPU-aa11"]),
        (" 1 , 0 ", ["GPU-ab22", "GPU-aa11"]),
        ("GPU-ab", ["GPU-ab22"]),
        ("GPU-a", []),  # it could be either
        ("MIG-aa11-1", ["MIG-aa11-1"]),
        ("MIG-GPU-ab22/3/0", ["GPU-ab22"]),
        ("1,-1,0", ["GPU-ab22"]),
        ("cuda:0", []),
    ],
)
def test_devices_are_chosen_as_cuda_chooses_them(text: str | None, uuids: list[str]) -> None:
    assert [device.uuid for device in visible_devices(text, [DIVIDED, OTHER])] == uuids


def test_a_rank_has_the_device_of_its_number_or_the_only_one() -> None:
    assert own_device([DIVIDED, OTHER], None) == [DIVIDED, OTHER]
    assert own_device([DIVIDED, OTHER], 1) == [OTHER]
    assert own_device([DIVIDED, OTHER], 2) == []
    assert own_device([OTHER], 3) == [OTHER]


def test_a_part_s_whole_is_the_gpu_it_is_a_part_of() -> None:
    assert PART.whole is WHOLE
    assert OTHER.whole is OTHER
