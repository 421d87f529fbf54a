from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from provml_lightning.storage.exclusion import alone

if TYPE_CHECKING:
    from pathlib import Path


def test_one_thread_at_a_time_is_in_the_block(tmp_path: Path) -> None:
    inside = [0]
    most = [0]

    def work() -> None:
        for _ in range(50):
            with alone(tmp_path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_where_nothing_can_be_locked_nobody_waits(tmp_path: Path) -> None:
    with alone(tmp_path / "not there"), alone(tmp_path / "not there"):
        pass
