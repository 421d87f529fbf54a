from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.domain.names import file_name, folder_name, local_name

TEXT = st.text(max_size=300)  # any Unicode, NUL included, but no lone surrogate
ANY = st.text(st.characters(codec=None), max_size=30)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loss", "loss"),
        ("Loss", "@loss"),
        ("@loss", "%40loss"),
        ("a/b", "a%2fb"),
        ("", "~"),
        ("~", "%7e"),
        ("ü", "%c3%bc"),
        ("\0", "%00"),
        ("..", "%2e%2e"),
        (".hidden", "%2ehidden"),
        ("end.", "end%2e"),
        ("con", "%63on"),
        ("nul.txt", "%6eul.txt"),
        ("%2f", "%252f"),
    ],
)
def test_a_name_is_spelled_so_in_a_file_name(name: str, expected: str) -> None:
    assert file_name(name) == expected


@given(st.lists(ANY | TEXT, min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_file_whatever_the_file_system_thinks_of_case(
    names: list[str],
) -> None:
    one, other = map(file_name, names)
    assert one.casefold() != other.casefold()


@given(st.lists(ANY | TEXT, min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_folder_or_an_identifier(names: list[str]) -> None:
    assert folder_name(names[0]) != folder_name(names[1])
    assert local_name(names[0]) != local_name(names[1])


@given(ANY | TEXT | st.builds(str.__mul__, st.text(min_size=1, max_size=3), st.just(3000)))
def test_a_file_name_is_one_part_of_a_path_on_any_system(name: str) -> None:
    for encoded in (file_name(name), folder_name(name)):
        assert re.fullmatch(r"[A-Za-z0-9_\-.=+@%~]{1,150}", encoded)
        assert encoded not in (".", "..")
        assert not encoded.endswith(".")


@given(st.integers(151, 5000), st.text("xy", min_size=1, max_size=3))
def test_long_names_that_differ_at_the_end_stay_apart(length: int, end: str) -> None:
    assert file_name("a" * length + end) != file_name("a" * length + end + "z")
