from __future__ import annotations

from provml_lightning.domain.reading import stem


def test_the_files_of_a_writer_share_a_name_and_later_segments_are_counted() -> None:
    assert stem(0, 1) == "rank-00000"
    assert stem(12, 3) == "rank-00012.3"
    assert stem(123456, 1) == "rank-123456"
