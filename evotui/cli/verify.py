"""``evotui check``: one run's record, or those of all the runs in a folder, a suite's too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os.path import lexists
from pathlib import Path
from typing import Any

import click

from evotui.cli.errors import FAILURE, NOT_FOUND, OK, Told, explain
from evotui.record.check import Findings, examine
from evotui.record.rundir import EVENTS, SUITE, NotFound, find, scan
from evotui.report.jsondoc import check_document, checks_document
from evotui.report.text import check_line, check_text, checks_text


def verify(selector: str, runs: Path, as_json: bool) -> int:
    """Check what ``selector`` names and tell it on stdout; returns the exit code.

    Raises NotFound, and LogError for a run that cannot be checked; with ``as_json`` its document says why.
    """
    folder = _folder(selector, runs)
    if folder is not None:
        return _all(folder, as_json)
    path = find(selector, runs)
    if not as_json:
        findings = examine(path)
        click.echo(check_text(path, findings))
        return FAILURE if findings.breaches else OK
    findings, told = _examine(path)
    click.echo(_json(check_document(path, findings, told.message if told is not None else "")))
    if told is not None:
        return told.code
    return FAILURE if findings.breaches else OK


def _folder(selector: str, runs: Path) -> Path | None:
    """The folder of runs that is meant: a path to one that is no run itself, or the name of a suite below ``runs``."""
    path = Path(selector)
    if selector and path.is_dir() and not lexists(path / EVENTS) and next(scan(path), None) is not None:
        return path
    suite = runs / selector
    return suite if selector and not path.exists() and (suite / SUITE).is_file() else None


def _all(folder: Path, as_json: bool) -> int:
    """Each run of a folder, a line as soon as it is checked. What cannot be checked stops no other."""
    documents: list[dict[str, Any]] = []
    for path, findings, problem in _examined(folder):
        documents.append(check_document(path, findings, problem))
        if not as_json:
            click.echo(check_line(str(path.relative_to(folder)), findings, problem))
    if not documents:
        raise NotFound(f"{folder} holds no runs")
    click.echo(_json(checks_document(folder, documents)) if as_json else checks_text(documents))
    if any(document["breaches"] for document in documents):
        return FAILURE
    return OK if all(document["ok"] for document in documents) else NOT_FOUND


def _examined(folder: Path) -> Iterator[tuple[Path, Findings, str]]:
    for path in scan(folder):
        findings, told = _examine(path)
        yield path, findings, told.message if told is not None else ""


def _examine(path: Path) -> tuple[Findings, Told | None]:
    """What the check of a run found, and why it could not be checked, if so."""
    try:
        return examine(path), None
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        return Findings(()), told


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
