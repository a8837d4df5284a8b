"""Writes one episode's files, cheaply enough for the hot path: trajectory, observations, output, executed actions.

All of them are complete on disk when :meth:`Recorder.finish` returns. What a file holds is PROTOCOL's: one line of
JSON per environment step, the observation that the policy was given, the action as it returned it.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evotui.protocol.spaces import Schema, to_jsonable
from evotui.protocol.verdict import Fault
from evotui.rollout.output import printable

_FLUSH_BYTES = 1 << 20  # trajectory lines held in memory before they go to the file
_SPOOL_BYTES = 64 << 20  # observations held in memory; of images, the rest goes to an unnamed temporary file
_ZIP_LEVEL = 1  # rendered frames shrink about twentyfold at the fastest level, for 0.15 ms each


class RecordingFailed(Exception):
    """An episode's files cannot be written: the disk's fault, nobody's policy; the message names file and reason."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make an OSError below ``path`` a RecordingFailed."""
    try:
        yield
    except OSError as error:
        raise RecordingFailed(f"{error.filename or path}: {error.strerror or error}") from error


class _Line(msgspec.Struct):
    t: int
    obs: Any
    action: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: Any


def plain(schema: Schema) -> Callable[[Any], Any]:
    """A fast ``to_jsonable`` for canonical values of one space (NaN and infinities as strings)."""
    kind = schema["type"]
    if kind == "Dict":
        parts = [(key, plain(s)) for key, s in schema["spaces"].items()]
        return lambda value: {key: one(value[key]) for key, one in parts}
    if kind == "Tuple":
        makers = [plain(s) for s in schema["spaces"]]
        return lambda value: [one(part) for one, part in zip(makers, value, strict=True)]
    if kind in ("Discrete", "Text"):
        return lambda value: value
    if np.dtype(schema["dtype"]).kind != "f":
        return lambda value: value.tolist()
    if len(schema.get("shape", ())) != 1:
        return lambda value: value.tolist() if np.isfinite(value).all() else to_jsonable(value)

    def vector(value: Any) -> Any:
        numbers = value.tolist()
        return numbers if math.isfinite(sum(numbers)) else to_jsonable(value)

    return vector


class Sample:
    """What a policy was shown (as ``pack`` makes bytes of it) and what it returned, step by step, in memory.

    ``too_large``: it was more than 64 MB, and only its beginning is here.
    """

    def __init__(self, pack: Callable[[Any], bytes]) -> None:
        self._pack, self._bytes = pack, 0
        self.shown: list[bytes] = []
        self.returned: list[Any] = []
        self.too_large = False

    def add(self, obs: Any, returned: Any) -> None:
        """One step; ``obs`` is canonical and may change afterwards."""
        if not self.too_large:
            self.shown.append(self._pack(obs))
            self.returned.append(returned)
            self._bytes += len(self.shown[-1])
            self.too_large = self._bytes > _SPOOL_BYTES


class Recorder:
    """Files of one episode under ``folder`` (None: no files), executed actions under ``actions`` (None: none)."""

    def __init__(self, obs_schema: Schema, folder: Path | None, actions: Path | None) -> None:
        self.folder = folder
        self._actions_path = actions
        self._actions: list[Any] = []
        self.sample: Sample | None = None
        """Where somebody wants to play the episode again; set before the first step."""
        self._images = obs_schema["type"] == "Image"
        self._plain = plain(obs_schema)
        self._encoder = msgspec.json.Encoder()
        self._pending = bytearray()
        self._rows = 0
        self._finished = False
        self._shape = tuple(obs_schema.get("shape", ()))
        if folder is None:
            return
        with writing(folder):
            if folder.exists():  # an attempt that a crash cut short
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
            self._trajectory = (folder / "trajectory.jsonl").open("wb", buffering=0)
        if self._images:
            self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 closed in finish

    def step(
        self,
        obs: Any,
        returned: Any,
        executed: Any,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: dict[str, Any],
        marks: dict[str, Any] | None,
    ) -> None:
        """Note one environment step. ``obs`` is canonical, ``returned`` plain data, ``marks`` are added to the info."""
        if self._actions_path is not None:
            self._actions.append(executed)
        if self.sample is not None:
            self.sample.add(obs, returned)
        if self.folder is None:
            return
        told = to_jsonable(info) if info else {}
        if marks:
            told = {**told, **marks}
        seen = None if self._images else self._plain(obs)
        paid = reward if math.isfinite(reward) else to_jsonable(reward)
        line = _Line(self._rows, seen, returned, paid, terminated, truncated, told)
        self._encoder.encode_into(line, self._pending, -1)
        self._pending += b"\n"
        if self._images:
            with writing(self.folder):
                self._spool.write(obs.tobytes())
        self._rows += 1
        if len(self._pending) > _FLUSH_BYTES:
            self._write_pending()

    @property
    def idle(self) -> bool:
        """Whether steps need not be told."""
        return self.folder is None and self._actions_path is None and self.sample is None

    def finish(self, stdout: bytes, stderr: bytes, fault: Fault | None) -> None:
        """Complete every file and close it. Raises RecordingFailed; then nothing is left of them."""
        try:
            if self._actions_path is not None:
                with writing(self._actions_path):
                    save_actions(self._actions_path, self._actions)
            if self.folder is not None:
                with writing(self.folder):
                    self._finish(self.folder, stdout, stderr, fault)
        except RecordingFailed:
            self.discard()
            raise
        self._finished = True

    def _write_pending(self) -> None:
        """All of it: an unbuffered file may take less than it was given, as a disk does that is nearly full."""
        assert self.folder is not None
        with writing(self.folder), memoryview(self._pending) as pending:
            written = 0
            while written < len(pending):
                written += self._trajectory.write(pending[written:]) or 0
        self._pending.clear()

    def _finish(self, folder: Path, stdout: bytes, stderr: bytes, fault: Fault | None) -> None:
        self._write_pending()
        self._trajectory.close()
        for name, raw in (("stdout.txt", stdout), ("stderr.txt", stderr)):
            (folder / name).write_text(printable(raw.decode("utf-8", "replace")), encoding="utf-8", newline="\n")
        if self._images:
            self._save_images(folder / "observations.npz")
        if fault is not None:
            (folder / "error.txt").write_text(error_text(fault), encoding="utf-8", newline="\n")

    def discard(self) -> None:
        """Close without completing, unless it was finished: the episode was called off."""
        if self.folder is not None and not self._finished:
            self._trajectory.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _save_images(self, path: Path) -> None:
        """``observations.npz`` with ``observations`` (steps, height, width, channels), uint8; row t is step t's."""
        self._spool.seek(0)
        header = {"descr": "|u1", "fortran_order": False, "shape": (self._rows, *self._shape)}
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_ZIP_LEVEL) as archive,
            archive.open("observations.npy", "w", force_zip64=True) as member,
        ):
            np.lib.format.write_array_header_1_0(member, header)
            shutil.copyfileobj(self._spool, member, 1 << 20)
        self._spool.close()


def error_text(fault: Fault) -> str:
    """A fault for the eye: kind, where, message, traceback."""
    where = "in reset" if fault.step < 0 else f"at step {fault.step}"
    return f"{fault.kind} {where}: {fault.message}\n" + (f"\n{fault.traceback.rstrip()}\n" if fault.traceback else "")


def save_actions(path: Path, actions: list[Any]) -> None:
    """Executed actions, one row a step: ``path.npy`` for numbers, ``path.npz`` with one array per part for groups.

    Parts of a Tuple or Dict are named by their keys, nested ones joined with ``/``; an episode without steps has an
    empty ``.npy``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    first = actions[0] if actions else None
    if not isinstance(first, (dict, tuple)):
        np.save(path.with_name(path.name + ".npy"), np.asarray(actions))
        return
    columns: dict[str, list[Any]] = {}
    for action in actions:
        for key, value in _leaves("", action):
            columns.setdefault(key, []).append(value)
    arrays: dict[str, Any] = {key: np.asarray(column) for key, column in columns.items()}
    np.savez(path.with_name(path.name + ".npz"), **arrays)


def load_actions(path: Path, schema: Schema) -> list[Any]:
    """What :func:`save_actions` wrote, as actions that the environment takes. Raises OSError or ValueError."""
    plain_file = path.with_name(path.name + ".npy")
    if plain_file.exists():
        rows = np.load(plain_file, allow_pickle=False)
        return rows.tolist() if schema["type"] in ("Discrete", "Text") else list(rows)
    with np.load(path.with_name(path.name + ".npz"), allow_pickle=False) as archive:
        columns = {key: archive[key] for key in archive.files}
    length = len(next(iter(columns.values()))) if columns else 0
    return [_assemble("", schema, columns, t) for t in range(length)]


def _leaves(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (dict, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, part in items for leaf in _leaves(f"{prefix}/{key}" if prefix else str(key), part)]
    return [(prefix, value)]


def _assemble(prefix: str, schema: Schema, columns: dict[str, np.ndarray], t: int) -> Any:
    if schema["type"] in ("Dict", "Tuple"):
        spaces = schema["spaces"]
        items = spaces.items() if isinstance(spaces, dict) else enumerate(spaces)
        made = [(key, _assemble(f"{prefix}/{key}" if prefix else str(key), s, columns, t)) for key, s in items]
        return dict(made) if schema["type"] == "Dict" else tuple(value for _, value in made)
    value = columns[prefix][t]
    return value.item() if schema["type"] in ("Discrete", "Text") else value
