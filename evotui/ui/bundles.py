"""Policy systems read from a run's folder: texts by path, remembered. Blocking; call it in a thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from evotui.protocol.codemetrics import is_litter
from evotui.record.rundir import RunDir
from evotui.ui.select import Ref

_SKIP = {"_meta.json", "metrics.json", ".keep"}
_SKIP_FOLDERS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".git"}
_MOST_FILES = 64
_MOST_BYTES = 512 * 1024

Bundle = Mapping[str, str]


def _text(path: Path) -> str | None:
    """A file's text, or None where it is not one that can be shown."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def read_folder(folder: Path) -> dict[str, str]:
    """Text files below a policy system by relative POSIX path, ``policy.py`` first; no caches, no editor's litter, no
    files of ours."""
    found: dict[str, str] = {}
    if not folder.is_dir():
        return found
    paths = sorted(p for p in folder.rglob("*") if p.name not in _SKIP and p.is_file() and not p.is_symlink())
    for path in sorted(paths, key=lambda p: p.relative_to(folder).as_posix() != "policy.py"):
        relative = path.relative_to(folder)
        if is_litter(path.name) or _SKIP_FOLDERS.intersection(relative.parts) or len(found) >= _MOST_FILES:
            continue
        text = _text(path)
        if text is not None:
            found[relative.as_posix()] = text
    return found


class Bundles:
    """Reads and remembers the bundles of one run. Safe to call from one thread at a time."""

    def __init__(self, run: RunDir, most: int = 64) -> None:
        self._run = run
        self._most = most
        self._known: OrderedDict[Ref, Bundle] = OrderedDict()

    def load(self, ref: Ref) -> Bundle:
        """The bundle of a reference; empty where the record does not hold it (yet)."""
        known = self._known.get(ref)
        if known is not None:
            self._known.move_to_end(ref)
            return known
        if ref.checkpoint is not None:
            bundle = read_folder(self._run.checkpoint(ref.checkpoint))
        else:
            bundle = {}
            for path, sha in sorted(ref.files, key=lambda item: item[0] != "policy.py"):
                text = _text(self._run.blob(sha))
                if text is not None:
                    bundle[path] = text
        if bundle:
            self._known[ref] = bundle
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return bundle
