from __future__ import annotations

import html
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provml_lightning.errors import ExportError, MalformedDocumentError
from provml_lightning.exporters.graph import graph_from_document, write_dot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pydot

    Parse = Callable[[str], pydot.Dot]


# pydot's parser uses names that pyparsing has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated - use:DeprecationWarning")


def shown(label: str) -> str:
    """Return what a reader sees of an HTML-like label, lines joined by a bar."""
    text = re.sub(r"<[^<>]*>", "", label[1:-1].replace("<br/>", "|"))
    return html.unescape(text).replace("\\\\", "\\")


def labels(graph: pydot.Graph) -> dict[str, tuple[str, pydot.Node]]:
    """Return the drawn nodes, frames included, by their names, with what is to be read on them."""
    found = {
        node.get_name(): (shown(node.get_label()), node)
        for node in graph.get_nodes()
        if node.get_name() not in {"node", "edge"}
    }
    for frame in graph.get_subgraphs():
        found |= labels(frame)
    return found


def nodes(graph: pydot.Graph) -> dict[str, pydot.Node]:
    """Return the drawn nodes, frames included, by what is to be read on them."""
    return dict(labels(graph).values())


def edges(graph: pydot.Dot) -> set[tuple[str, str, str]]:
    """Return the arrows as (from, relation, to), each end by its first line."""
    names = {name: label.split("|")[0] for name, (label, _) in labels(graph).items()}
    return {
        (names[edge.get_source()], edge.get_label().strip('"'), names[edge.get_destination()])
        for edge in graph.get_edges()
    }


def test_each_kind_has_the_shape_and_colour_of_the_w3c(
    small: dict[str, Any], parsed: Parse
) -> None:
    drawn = nodes(parsed(graph_from_document(small)))

    looks = {
        label.split("|")[0]: (node.get_shape(), node.get_fillcolor())
        for label, node in drawn.items()
    }

    assert looks == {
        "ada": ("house", '"#FED37F"'),
        "digits_0": ("box", '"#9FB1FC"'),
        "Training": ("box", '"#9FB1FC"'),
        "lr": ("ellipse", '"#FFFC87"'),
        "loss": ("ellipse", '"#FFFC87"'),
        "metrics/Training.parquet": ("ellipse", '"#FFFC87"'),
    }


def test_every_relation_is_an_arrow_with_its_name(small: dict[str, Any], parsed: Parse) -> None:
    assert edges(parsed(graph_from_document(small))) == {
        ("digits_0", "wasAssociatedWith", "ada"),
        ("Training", "wasInformedBy", "digits_0"),
        ("digits_0", "used", "lr"),
        ("metrics/Training.parquet", "wasGeneratedBy", "digits_0"),
        ("loss", "wasGeneratedBy", "Training"),
        ("metrics/Training.parquet", "hadMember", "loss"),
    }


def test_few_facts_stand_below_a_name(small: dict[str, Any], parsed: Parse) -> None:
    assert set(nodes(parsed(graph_from_document(small)))) == {
        "ada",
        "digits_0|completed · 2.5 s",
        "Training",
        "lr|0.001",
        "loss|last 1100 J · 100 values",
        "metrics/Training.parquet",
    }


def test_one_value_is_no_plural(small: dict[str, Any], parsed: Parse) -> None:
    (loss,) = (one for one in small["entity"].values() if one["prov:label"] == "loss")
    loss["provml:rows"] = 1
    assert "loss|last 1100 J · 1 value" in nodes(parsed(graph_from_document(small)))


def test_a_context_and_what_it_alone_made_share_a_frame(
    small: dict[str, Any], parsed: Parse
) -> None:
    (frame,) = parsed(graph_from_document(small)).get_subgraphs()

    assert set(nodes(frame)) == {"Training", "loss|last 1100 J · 100 values"}


def test_the_same_document_gives_the_same_text(small: dict[str, Any]) -> None:
    assert graph_from_document(small) == graph_from_document(small)


def test_an_id_that_stands_for_several_records_is_one_node(parsed: Parse) -> None:
    document = {"entity": {"exp": [{"prov:label": "first"}, {"prov:value": 3}]}}

    assert list(nodes(parsed(graph_from_document(document)))) == ["first|3"]


def test_relations_and_members_may_be_lists(parsed: Parse) -> None:
    document = {
        "hadMember": {"_:1": {"prov:collection": "c", "prov:entity": ["e", "f"]}},
        "used": {
            "_:2": [
                {"prov:activity": "a", "prov:entity": "e"},
                {"prov:activity": "a", "prov:entity": "f"},
            ]
        },
    }

    assert edges(parsed(graph_from_document(document))) == {
        ("c", "hadMember", "e"),
        ("c", "hadMember", "f"),
        ("a", "used", "e"),
        ("a", "used", "f"),
    }


def test_what_is_related_but_never_described_is_grey_and_of_the_kind_the_relation_says(
    parsed: Parse,
) -> None:
    document = {"wasGeneratedBy": {"_:1": {"prov:entity": "ex:e", "prov:activity": "ex:a"}}}

    drawn = nodes(parsed(graph_from_document(document)))

    assert {label: (node.get_shape(), node.get_fillcolor()) for label, node in drawn.items()} == {
        "ex:e": ("ellipse", "lightgray"),
        "ex:a": ("box", "lightgray"),
    }


def test_a_bundle_is_a_frame_with_its_name(parsed: Parse) -> None:
    document = {
        "prefix": {"ex": "http://example.org/"},
        "entity": {"ex:b1": {}},
        "bundle": {"ex:b1": {"entity": {"ex:inside": {}}}},
    }

    (frame,) = parsed(graph_from_document(document)).get_subgraphs()

    assert frame.get_label() == '"ex:b1"'
    assert list(nodes(frame)) == ["ex:inside"]


def test_two_spellings_of_one_iri_are_one_node(parsed: Parse) -> None:
    document = {
        "prefix": {"ex": "http://example.org/", "default": "http://example.org/"},
        "entity": {"ex:e": {}},
        "wasDerivedFrom": {"_:1": {"prov:generatedEntity": "f", "prov:usedEntity": "e"}},
    }

    assert edges(parsed(graph_from_document(document))) == {("f", "wasDerivedFrom", "ex:e")}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("prov:Revision", "wasRevisionOf"),
        ("prov:Quotation", "wasQuotedFrom"),
        ("prov:PrimarySource", "hadPrimarySource"),
    ],
)
def test_a_derivation_with_a_name_of_its_own_is_called_by_it(
    kind: str, name: str, parsed: Parse
) -> None:
    record = {
        "prov:generatedEntity": "new",
        "prov:usedEntity": "old",
        "prov:type": {"$": kind, "type": "prov:QUALIFIED_NAME"},
    }

    graph = parsed(graph_from_document({"wasDerivedFrom": {"_:1": record}}))

    assert edges(graph) == {("new", name, "old")}


def test_a_relation_with_a_missing_end_is_left_out(parsed: Parse) -> None:
    document = {"used": {"_:1": {"prov:activity": "a"}}, "wasStartedBy": {"_:2": {}}}

    assert edges(parsed(graph_from_document(document))) == set()


def test_ten_thousand_parameters_and_metrics_are_few_nodes(
    large: Callable[[int], dict[str, Any]], parsed: Parse
) -> None:
    document = large(10_000)
    started = time.process_time()
    text = graph_from_document(document)
    seconds = time.process_time() - started

    drawn = [label for label, _ in labels(parsed(text)).values()]

    assert seconds < 2
    # The run, two contexts; of each of three families seven that stay and one that counts.
    assert len(drawn) == 3 + 3 * 8
    assert [label for label in drawn if "more" in label] == [
        "9 993 more parameters",
        "4 993 more metrics",
        "4 993 more metrics",
    ]


def test_what_a_library_sets_is_one_node_beside_what_the_user_set(
    small: dict[str, Any], parsed: Parse
) -> None:
    for number in range(3):
        setting = {**small["entity"]["param/~~/lr"], "yprov:source": "lightning"}
        small["entity"][f"param/~~/{number}"] = setting
        used = {"prov:activity": "run/digits_0", "prov:entity": f"param/~~/{number}"}
        small["used"][f"_:setting{number}"] = used
    drawn = [label for label, _ in labels(parsed(graph_from_document(small))).values()]
    assert [label for label in drawn if "settings" in label] == ["3 settings"]
    assert "lr|0.001" in drawn


def test_the_user_s_metrics_are_drawn_before_those_that_were_measured(
    large: Callable[[int], dict[str, Any]], parsed: Parse
) -> None:
    document = large(40)
    for i in range(36):
        document["entity"][f"metric/{i}"]["yprov:source"] = ("carbon:rapl+nvml.energy", "procfs")[
            i // 2 % 2
        ]

    drawn = {label.split("|")[0] for label in nodes(parsed(graph_from_document(document)))}

    assert {"m36", "m37", "m38", "m39"} <= drawn


def test_what_is_folded_keeps_its_relations(
    large: Callable[[int], dict[str, Any]], parsed: Parse
) -> None:
    graph = parsed(graph_from_document(large(10), alike=3))

    assert edges(graph) == {
        ("r_0", "used", "p0"),
        ("r_0", "used", "p1"),
        ("r_0", "used", "8 more parameters"),
        ("m0", "wasGeneratedBy", "Training"),
        ("m2", "wasGeneratedBy", "Training"),
        ("3 more metrics", "wasGeneratedBy", "Training"),
        ("m1", "wasGeneratedBy", "Validation"),
        ("m3", "wasGeneratedBy", "Validation"),
        ("3 more metrics", "wasGeneratedBy", "Validation"),
    }


def test_as_many_as_the_threshold_are_all_drawn(
    large: Callable[[int], dict[str, Any]], parsed: Parse
) -> None:
    drawn = nodes(parsed(graph_from_document(large(8), alike=8)))

    assert not [label for label in drawn if "more" in label]


def test_a_picture_with_too_many_nodes_is_folded_further(
    large: Callable[[int], dict[str, Any]], parsed: Parse
) -> None:
    graph = parsed(graph_from_document(large(100), alike=50, largest=30))

    # 50, 25 and 12 of each of three families are too many; 6 fit.
    assert len(labels(graph)) == 3 + 3 * 6


def test_a_chain_of_versions_keeps_first_best_last_and_its_path(
    versions: Callable[..., dict[str, Any]], parsed: Parse
) -> None:
    graph = parsed(graph_from_document(versions(1000, best=300)))

    assert edges(graph) == {
        ("299 more model versions", "wasDerivedFrom", "net_0"),
        ("net_300", "wasDerivedFrom", "299 more model versions"),
        ("698 more model versions", "wasDerivedFrom", "net_300"),
        ("net_999", "wasDerivedFrom", "698 more model versions"),
    }


def test_a_chain_without_a_best_keeps_first_and_last(
    versions: Callable[..., dict[str, Any]], parsed: Parse
) -> None:
    graph = parsed(graph_from_document(versions(20)))

    assert edges(graph) == {
        ("18 more model versions", "wasDerivedFrom", "net_0"),
        ("net_19", "wasDerivedFrom", "18 more model versions"),
    }


def test_a_circle_of_derivations_ends(parsed: Parse) -> None:
    document = {
        "wasDerivedFrom": {
            f"_:{i}": {"prov:generatedEntity": f"e{i}", "prov:usedEntity": f"e{(i + 1) % 9}"}
            for i in range(9)
        }
    }

    assert nodes(parsed(graph_from_document(document)))


def test_epochs_with_metrics_of_their_own_fold_together(parsed: Parse) -> None:
    document = {
        "activity": {f"epoch/{i}": {"prov:label": f"epoch {i}"} for i in range(500)},
        "wasInformedBy": {
            f"_:i{i}": {"prov:informed": f"epoch/{i}", "prov:informant": "run"} for i in range(500)
        },
        "wasGeneratedBy": {
            f"_:g{i}": {"prov:entity": f"loss{i}", "prov:activity": f"epoch/{i}"}
            for i in range(500)
        },
    }

    drawn = edges(parsed(graph_from_document(document)))

    assert ("493 more entities", "wasGeneratedBy", "493 more activities") in drawn
    assert ("loss3", "wasGeneratedBy", "epoch 3") in drawn
    assert len(drawn) == 2 * 8


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(name=st.text(max_size=50))
def test_any_name_is_one_node_and_one_label(name: str, parsed: Parse) -> None:
    document = {"entity": {"e": {"prov:label": name}}}

    graph = parsed(graph_from_document(document))

    (label,) = nodes(graph)
    if name.isprintable() and name.strip():
        assert label == " ".join(name.split())


def test_a_long_value_is_cut_in_the_middle(parsed: Parse) -> None:
    document = {"entity": {"e": {"prov:label": "name", "prov:value": "a" * 500 + "z" * 500}}}

    assert list(nodes(parsed(graph_from_document(document)))) == [
        "name|" + "a" * 30 + "…" + "z" * 29
    ]


@pytest.mark.parametrize(
    "document", [{"entity": []}, {"entity": {"e": 3}}, {"used": {"_:1": "a"}}, {"prefix": 1}]
)
def test_what_has_not_the_shape_of_prov_json_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocumentError, match="not PROV-JSON"):
        graph_from_document(document)


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prov.json").write_text("{")

    with pytest.raises(MalformedDocumentError, match="is not JSON"):
        write_dot(tmp_path / "prov.json", tmp_path / "out.dot")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not the folder of a run"):
        write_dot(tmp_path, tmp_path / "out.dot")


def test_a_target_that_cannot_be_written_is_an_export_error(tmp_path: Path) -> None:
    (tmp_path / "prov.json").write_text("{}")

    with pytest.raises(ExportError, match="cannot be written"):
        write_dot(tmp_path / "prov.json", tmp_path / "missing" / "out.dot")
