"""The anchors of Core16 beside the paper's figures: what is random, what is good, whom the reference beats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evotui.analysis.paper import core16, paper_entries
from evotui.protocol.task import Anchor, TaskSpec
from evotui.report.jsondoc import SCHEMA_VERSION
from evotui.report.text import table


def anchors_document(tasks: Mapping[str, TaskSpec]) -> dict[str, Any]:
    """By environment: our random and reference means with n and standard error, the paper's random and best entry.

    ``tasks`` by short name; ``beats`` is null where no reference was measured.
    """
    agents = [entry for entry in paper_entries() if not entry.random]
    uniform = next(entry for entry in paper_entries() if entry.random)
    rows = []
    for env in core16():
        anchors = tasks[env.key].anchors if env.key in tasks else {}
        best = max(agents, key=lambda entry: entry.returns[env.key][0])
        reference = anchors.get("reference")
        rows.append(
            {
                "name": env.key,
                "random": _anchor(anchors.get("random")),
                "paper_random": uniform.returns[env.key][0],
                "reference": _anchor(reference),
                "paper_best": best.returns[env.key][0],
                "paper_best_model": best.model,
                "beats": reference.mean > best.returns[env.key][0] if reference is not None else None,
            }
        )
    return {"schema_version": SCHEMA_VERSION, "anchors": rows, "beaten": sum(row["beats"] is True for row in rows)}


def _anchor(anchor: Anchor | None) -> dict[str, Any] | None:
    if anchor is None:
        return None
    return {"mean": anchor.mean, "se": anchor.se, "n": anchor.n, "source": anchor.source}


def anchors_text(document: Mapping[str, Any]) -> str:
    """The same for a person."""
    head = ["environment", "random", "se", "n", "paper's random", "reference", "se", "n", "paper's best", "", ""]
    lines = []
    for row in document["anchors"]:
        beats = {True: "beaten", False: "not beaten", None: ""}[row["beats"]]
        lines.append(
            [row["name"], *_figures(row["random"]), _figure(row["paper_random"]), *_figures(row["reference"]),
             _figure(row["paper_best"]), row["paper_best_model"], beats]
        )  # fmt: skip
    total = f"the reference beats the paper's best entry in {document['beaten']} of {len(lines)} environments"
    return f"{table(head, lines, right=range(1, 9))}\n{total}"


def _figures(anchor: Mapping[str, Any] | None) -> list[str]:
    return ["–", "", ""] if anchor is None else [_figure(anchor["mean"]), f"{anchor['se']:.2g}", str(anchor["n"])]


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
