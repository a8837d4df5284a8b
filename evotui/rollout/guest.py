"""The trusted stub inside the policy process: loads the policy system, answers the worker.

Loaded by path, by sandbox.py; imports the standard library, numpy and its sibling files only, so that nothing of evotui
need be importable here. Nothing that arrives here is secret: the configuration holds spaces,
limits and the snapshot's path, a RESET holds the seed of the *global generators* (a one-way hash of the case's).

The first process is the zygote: it never runs policy code. It forks one process per episode (or per submission), so
module state cannot leak from one episode to another and an import is paid for once. Replies from a served process are
untrusted from the moment the policy is loaded; the worker treats them so.
"""

from __future__ import annotations

import array
import ast
import builtins
import contextlib
import gc
import importlib.machinery
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
from typing import Any

import numpy as np
import numpy.linalg


def _sibling(name: str) -> Any:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(f"_guest_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wire = _sibling("wire")
layout = _sibling("layout")
v03 = _sibling("v03")
v03.provide_names()
HEADER = wire.HEADER
INT64 = wire.INT64
_DYING_SECONDS = 0.05
_MESSAGE_CHARS, _TRACEBACK_CHARS, _ODD_BYTES = 500, 6000, 12 << 10  # each fits into wire.MAX_REPLY as ASCII JSON
_ODD_VALUES = 1000
_LOAD_SEED = 0  # import and constructor see the same random numbers in every episode: a policy starts as one thing
_STUB = os.path.dirname(os.path.abspath(__file__)) + os.sep


# ------------------------------------------------------------------------------------------------------- the policy


class Policies:
    """The policy system of one process: what makes its Policy objects, and these by slot."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.make: Any = None
        self.slots: list[Any] = []

    def load(self) -> None:
        """Import ``policy.py`` with the snapshot first on the path. Raises whatever the policy raises."""
        seed_globals(_LOAD_SEED)
        path = os.path.join(self.config["system"], "policy.py")
        spec = importlib.util.spec_from_file_location("policy", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["policy"] = module
        spec.loader.exec_module(module)
        self.make = v03.constructor(module)
        if self.make is None:
            raise AttributeError("policy.py defines no class Policy")

    def construct(self, n: int) -> None:
        for _ in range(n):
            seed_globals(_LOAD_SEED)
            given = json.loads(self.config["given"])  # fresh copies: a policy may write into what it was given
            self.slots.append(self.make(given["obs_space"], given["action_space"], given["env_meta"]))


_seed = _LOAD_SEED


def seed_globals(seed: int) -> None:
    """Seed ``random`` and numpy's legacy generator; the latter now if it is there, else when it is imported.

    numpy loads it on demand, and a process without it is forked and ended in two thirds of the time.
    """
    global _seed
    _seed = seed
    random.seed(seed)
    if "numpy.random" in sys.modules:
        np.random.seed(seed & 0xFFFFFFFF)


class SeedOnImport:
    """Finds ``numpy.random`` for whoever imports it, however it is done, and seeds it once it is loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != "numpy.random":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                plain(module)
                module.seed(_seed & 0xFFFFFFFF)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def guard_imports(denied: tuple[str, ...], system: str) -> None:
    """Make ``import`` of a denied package raise ImportError where the policy's own code asks for it.

    A rule of the game, not a wall (the sandbox is that): installed libraries may still import what they need.
    """
    roots = frozenset({*denied, "evotui"})
    for name in [n for n in sys.modules if n.partition(".")[0] in roots]:
        del sys.modules[name]
    libraries = tuple({os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__))})

    def asked_by_policy() -> bool:
        frame = sys._getframe(2)
        while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
            frame = frame.f_back  # type: ignore[assignment]
        return frame is None or not frame.f_code.co_filename.startswith(libraries)

    def refuse(name: str) -> None:
        if name.partition(".")[0] in roots and asked_by_policy():
            raise ImportError(f"import of {name.partition('.')[0]!r} is denied to policies", name=name)

    class Refuse:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> None:
            refuse(name)

    plain_import = builtins.__import__

    def checked_import(name: str, *args: Any, **kwargs: Any) -> Any:
        refuse(name)
        return plain_import(name, *args, **kwargs)

    builtins.__import__ = checked_import
    sys.meta_path[:0] = [Refuse, SeedOnImport]


# ---------------------------------------------------------------------------------------------------------- actions


def encoder(schema: dict[str, Any]) -> Any:
    """``encode(action) -> bytes | None``: the action as the numbers of its space's shape, None if it is not that."""
    numbers = layout.action_numbers(schema)
    if numbers is None:
        return lambda action: None
    shape = layout.action_shape(schema)
    kind = numbers[0]
    readable = "fiu" if kind == "d" else "iub"

    def encode_scalar(action: Any) -> bytes | None:
        if isinstance(action, (int, np.integer, np.bool_)) or (
            type(action) is np.ndarray and action.shape == () and action.dtype.kind in "iub"
        ):
            number = int(action)
            return INT64.pack(number) if -(1 << 63) <= number < 1 << 63 else None
        return None

    def encode_array(action: Any) -> bytes | None:
        if type(action) is not np.ndarray:
            if not isinstance(action, (list, tuple)):
                return None
            action = np.array(action)
        if action.shape != shape or action.dtype.kind not in readable or action.dtype == np.uint64:
            return None
        return action.astype("<f8" if kind == "d" else "<i8").tobytes()

    return encode_scalar if schema["type"] == "Discrete" else encode_array


def describe(action: Any, room: list[int], depth: int = 0) -> Any:
    """Plain JSON data for an action that is not numbers of the right shape; objects are told by their type's name.

    ``room`` holds how many values may still be told; ValueError when it is used up.
    """
    room[0] -= 1
    if room[0] < 0:
        raise ValueError("too large to record")
    if action is None or isinstance(action, (bool, str)):
        return action[:200] if isinstance(action, str) else action
    if isinstance(action, (int, np.integer)):
        number = int(action)
        return number if abs(number) < 1 << 1000 else f"<int of {number.bit_length()} bits>"
    if isinstance(action, (float, np.floating)):
        return float(action)
    if isinstance(action, np.bool_):
        return bool(action)
    if isinstance(action, np.ndarray) and action.dtype.kind in "biufU" and action.size <= _ODD_VALUES:
        return action.tolist()
    if isinstance(action, (list, tuple)) and depth < 8:
        return [describe(part, room, depth + 1) for part in action]
    if isinstance(action, dict) and depth < 8:
        return {str(key)[:100]: describe(part, room, depth + 1) for key, part in action.items()}
    return f"<{type(action).__name__[:100]}>"


def odd(action: Any) -> bytes:
    try:
        try:
            raw = wire.to_json({"value": describe(action, [_ODD_VALUES])})
        except ValueError:
            raw = b""
        if 0 < len(raw) <= _ODD_BYTES:
            return bytes(raw)
        return bytes(wire.to_json({"value": f"<{type(action).__name__[:100]} too large to record>"}))
    except BaseException:  # an object that resists being looked at is an unreadable action
        return b'{"value":"<unreadable object>"}'


# ---------------------------------------------------------------------------------------------------------- reports


def report(error: BaseException, system: str) -> bytes:
    """What the policy raised, as JSON that fits one frame: type, message, traceback, whether memory ran out."""
    try:
        name = str(type.__getattribute__(type(error), "__name__"))[:100]
    except BaseException:
        name = "exception"
    try:
        message = f"{name}: {str(error)[:_MESSAGE_CHARS]}" if str(error) else name
    except BaseException:
        message = f"{name}: <its text could not be made>"
    try:
        told = traceback.TracebackException.from_exception(error)
        _only_policy_frames(told, set())
        text = "".join(told.format())
    except BaseException:
        text = message
    document: dict[str, Any] = {
        "message": message.replace(system + os.sep, ""),
        "traceback": text.replace(system + os.sep, "")[-_TRACEBACK_CHARS:],
        "memory": isinstance(error, MemoryError),
    }
    raw = wire.to_json(document)
    if len(raw) > wire.MAX_REPLY - HEADER.size:  # text outside ASCII takes six bytes a character
        raw = wire.to_json({**document, "message": message[:200], "traceback": text[-1000:]})
    return bytes(raw)


def _only_policy_frames(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack = traceback.StackSummary.from_list(
        [f for f in told.stack if not f.filename.startswith((_STUB, "<frozen importlib"))]
    )
    for chained in (told.__cause__, told.__context__):
        if chained is not None:
            _only_policy_frames(chained, seen)


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue  # the policy replaced or closed it: what was not flushed is its own loss


# ---------------------------------------------------------------------------------------------------------- serving


def act_many(slots: list[Any], unpack_many: Any, encode: Any, discrete: bool, source: Any, n: int) -> bytes | None:
    """One action for each slot of an ACT_MANY; None where one is not plain numbers."""
    at = 8 + 2 * n
    observations = unpack_many(source, at + -at % wire.ALIGN, n)
    numbers = struct.unpack_from(f"<{n}H", source, 8)
    actions = [slots[slot].act(obs) for slot, obs in zip(numbers, observations, strict=True)]
    if discrete and all(type(action) is int for action in actions):
        try:
            return array.array("q", actions).tobytes()
        except OverflowError:
            return None
    try:
        return b"".join([encode(action) for action in actions])
    except Exception:  # not numbers, or None for one that is not
        return None


class Codecs:
    """What serving needs and every policy process would build alike: made once, before the forks.

    A page that a child does not write to is never copied; building these cost each child a millisecond.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.observations = layout.Layout(config["obs_schema"])
        self.encode = encoder(config["action_schema"])
        self.discrete = config["action_schema"]["type"] == "Discrete"
        self.buffer = bytearray(wire.PART_BYTES + 64)
        self.pack_int = struct.Struct("<IHHq").pack


class Served:
    """One policy process that answers requests until the worker hangs up. Whatever a policy raises becomes a RAISED
    reply.

    After a RESET that says so it listens on the ``lane`` (two file descriptors, to read from and to write to), until
    that turns it aside.
    """

    def __init__(self, sock: socket.socket, lane: list[int], config: dict[str, Any], codecs: Codecs) -> None:
        self.sock, self.lane, self.codecs, self.system = sock, lane, codecs, config["system"]
        self.policies = Policies(config)

    def serve(self) -> None:
        """Never returns."""
        recv_into, send, buffer = self.sock.recv_into, self.sock.send, self.codecs.buffer
        whole = b""
        send(HEADER.pack(0, wire.HELLO, 0))
        while True:
            size = recv_into(buffer)
            if size == 0:
                os._exit(0)
            seq, kind, n = HEADER.unpack_from(buffer)
            if kind == wire.PART:
                whole += buffer[8:size]
                continue
            source: Any = buffer
            if whole:
                source = bytes(8) + whole + bytes(buffer[8:size])
                whole = b""
            if kind == wire.ACT:
                send(self.act(seq, source))
                continue
            try:
                send(self.answer(seq, kind, n, source))
            except BaseException as error:  # SystemExit and KeyboardInterrupt too: only the worker ends this process
                send(self.raised(seq, error))
                continue
            if kind == wire.RESET and n == 1 and wire.RESET_ITEM.unpack_from(source, 8)[1]:
                self.ride()

    def ride(self) -> None:
        """Answer ACTs on the lane, until the worker is gone or wants the socket."""
        (asked, answered), act, read, write = self.lane, self.act, os.read, os.write
        while True:
            frame = read(asked, wire.LANE_BYTES)
            if len(frame) <= HEADER.size:
                if not frame:
                    os._exit(0)
                return
            seq = HEADER.unpack_from(frame)[0]
            answer = act(seq, frame)
            if len(answer) > wire.LANE_BYTES:
                self.sock.send(answer)
                answer = HEADER.pack(seq, wire.ASIDE, 0)
            write(answered, answer)

    def act(self, seq: int, source: Any) -> bytes:
        """The frame that answers an ACT: the action's numbers, ODD or RAISED."""
        codecs = self.codecs
        try:
            action = self.policies.slots[0].act(codecs.observations.unpack(source, 8)[0])
            if codecs.discrete and type(action) is int and -(1 << 63) <= action < 1 << 63:
                return bytes(codecs.pack_int(seq, wire.ACT, 1, action))
            try:
                raw = codecs.encode(action)
            except Exception:  # ragged lists, hostile __array__: not numbers
                raw = None
            if raw is None:
                return bytes(HEADER.pack(seq, wire.ODD, 1) + odd(action))
            return bytes(HEADER.pack(seq, wire.ACT, 1) + raw)
        except BaseException as error:  # as in serve
            return self.raised(seq, error)

    def answer(self, seq: int, kind: int, n: int, source: Any) -> bytes:
        """Do what a request that is no ACT asks. Raises whatever the policy does."""
        policies = self.policies
        if kind == wire.ACT_MANY:
            codecs = self.codecs
            raw = act_many(policies.slots, codecs.observations.unpack_many, codecs.encode, codecs.discrete, source, n)
            if raw is None:
                return bytes(HEADER.pack(seq, wire.ODD, 1) + b'{"value":null}')
            return bytes(HEADER.pack(seq, kind, n) + raw)
        if kind == wire.LOAD:
            policies.load()
        elif kind == wire.CONSTRUCT:
            policies.construct(n)
        elif kind == wire.RESET:
            for i in range(n):
                slot, _, index, seed = wire.RESET_ITEM.unpack_from(source, 8 + i * wire.RESET_ITEM.size)
                seed_globals(seed)
                reset = getattr(policies.slots[slot], "reset", None)
                if reset is not None:
                    reset(index)
        elif kind == wire.FLUSH:
            flush()
        return bytes(HEADER.pack(seq, kind, n))

    def raised(self, seq: int, error: BaseException) -> bytes:
        flush()
        return bytes(HEADER.pack(seq, wire.RAISED, 0) + report(error, self.system))


# ----------------------------------------------------------------------------------------------------------- zygote


def python_files(system: str) -> list[str]:
    found = []
    for folder, _, names in os.walk(system):
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)[:256]


def prepare(system: str, denied: tuple[str, ...]) -> None:
    """Pay once for what every episode would pay: compile the snapshot's files, import the libraries that they name.

    Compiling runs no code of theirs, and libraries are found without the snapshot on the path. Whatever fails here
    fails again, and is told, where the policy does it.
    """
    compiled: dict[tuple[str, bytes], Any] = {}
    wanted: list[str] = []
    for path in python_files(system):
        try:
            with open(path, "rb") as file:
                data = file.read()
            if b"random" in data:
                wanted.append("numpy.random")
            tree = ast.parse(data, path)
            compiled[path, data] = compile(data, path, "exec", dont_inherit=True)
        except Exception:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                wanted += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                wanted.append(node.module)
    local = {name.removesuffix(".py") for name in os.listdir(system)}
    for name in dict.fromkeys(wanted):
        if name.partition(".")[0] not in local.union(denied):
            try:
                importlib.import_module(name)
            except BaseException:
                continue
    plain = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        return compiled.get((str(path), bytes(data))) or plain(self, data, path, **options)

    importlib.machinery.SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]


def kill_children() -> None:
    """Kill every other process of this guest, orphans included: all of the namespace, or what /proc shows."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return
    for pid in children:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap(served: int, patience: float = 0.0) -> int:
    """Kill and collect all children. The wait status of the served process if it ended by itself within ``patience``
    seconds (one that is just dying shall say why), else -1."""
    status = -1
    give_up = time.monotonic() + patience
    while served and time.monotonic() < give_up:
        pid, ended = os.waitpid(served, os.WNOHANG)
        if pid == served:
            served, status = 0, ended
        else:
            time.sleep(0.001)
    try:
        while True:
            kill_children()
            os.waitpid(-1, 0)
    except ChildProcessError:
        return status


def clean(folder: str) -> None:
    """Empty the scratch space: an episode finds nothing of an earlier one. Ends the guest where that cannot be done."""
    for entry in os.scandir(folder):
        try:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        except OSError:
            os._exit(0)


def zygote(control: socket.socket, config: dict[str, Any], walls: Any) -> None:
    """Prepare, raise the other walls, say what holds, then fork a process for each FORK until the worker is gone."""
    system = config["system"]
    prepare(system, tuple(config["denied"]))
    os.chdir(system)
    sys.path.insert(0, system)
    sys.argv = ["policy"]
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    walls.after_libraries()
    guard_imports(tuple(config["denied"]), system)  # from here on nobody imports but the policy
    codecs = Codecs(config)
    control.send(HEADER.pack(0, wire.READY, 0) + wire.to_json(walls.told()))
    gc.collect()
    gc.freeze()  # children share these pages: no collector pass ever writes to them
    served = 0
    while True:
        message, fds, _, _ = socket.recv_fds(control, 64, 3)
        if not message:
            reap(served)
            return
        seq, kind, patient = HEADER.unpack_from(message)
        status = reap(served, _DYING_SECONDS if patient else 0.0)
        served = 0
        if kind == wire.REAP:
            control.send(HEADER.pack(seq, kind, 0) + INT64.pack(status))
        elif kind == wire.FORK:
            if walls.scratch:
                clean(walls.scratch)
            me = os.getpid()
            served = os.fork()
            if served == 0:
                control.close()
                os.setpgid(0, 0)
                walls.in_policy_process(me)
                Served(socket.socket(fileno=fds[0]), fds[1:], config, codecs).serve()
            for fd in fds:
                os.close(fd)
