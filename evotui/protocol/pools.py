"""Case pools: train (ids visible to the agent), validation and held-out (hidden). Seeds stay here and in workers."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

N_TRAIN = 1024
PAPER_VALIDATION = 64
PAPER_HELDOUT = 256
SECRET_BITS = 128


class PoolKind(StrEnum):
    """Where a run's cases come from."""

    SECRET = "secret"
    PAPER = "paper"
    FILES = "files"


class Split(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    HELDOUT = "heldout"

    @property
    def file_name(self) -> str:
        """The published harness's file name for this split."""
        return {"train": "train.json", "validation": "valid.json", "heldout": "heldout.json"}[self.value]


@dataclass(frozen=True, slots=True, repr=False)
class Pools:
    """Reset seeds of a run's cases, by split. Pairwise disjoint, no duplicates. Its repr never shows a seed."""

    kind: PoolKind
    train: tuple[int, ...]
    validation: tuple[int, ...]
    heldout: tuple[int, ...]

    def __post_init__(self) -> None:
        seen: dict[int, tuple[Split, int]] = {}
        for split in Split:
            seeds = self.of(split)
            if not seeds:
                raise ValueError(f"the {split} pool is empty: it needs at least one case")
            for position, seed in enumerate(seeds):
                if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
                    raise ValueError(f"case {position} of the {split} pool: a seed is an integer of at least 0")
                if seed in seen:
                    other, place = seen[seed]
                    which = f"case {place} of the {other} pool" if other != split else f"case {place}"
                    every = "the three pools share no seed" if other != split else "a pool has each seed once"
                    raise ValueError(f"case {position} of the {split} pool has the seed of {which}; {every}")
                seen[seed] = split, position

    def __repr__(self) -> str:
        sizes = f"{len(self.train)} train, {len(self.validation)} validation, {len(self.heldout)} held-out"
        return f"Pools({self.kind}, {sizes})"

    def of(self, split: Split) -> tuple[int, ...]:
        return {Split.TRAIN: self.train, Split.VALIDATION: self.validation, Split.HELDOUT: self.heldout}[split]

    def file_bytes(self, split: Split, env: str) -> bytes:
        """The split as the published harness's pool file; its SHA-256 is what a run records."""
        cases = [{"seed": seed} for seed in self.of(split)]
        document = {"env": env, "split": split.file_name.removesuffix(".json"), "cases": cases}
        return (json.dumps(document, separators=(",", ":")) + "\n").encode()

    def hashes(self, env: str) -> dict[str, str]:
        """``{split: "sha256:…"}`` of the three pool files."""
        return {str(s): "sha256:" + hashlib.sha256(self.file_bytes(s, env)).hexdigest() for s in Split}

    @property
    def seed_bits(self) -> int:
        return max(seed.bit_length() for split in Split for seed in self.of(split))


def paper_pools(n_validation: int, n_heldout: int) -> Pools:
    """The paper's public pools: distinct values of ``random.Random(0).randrange(2**31)`` in order of appearance.

    The first 1,024 are train, the next 64 validation, the next 256 held-out; smaller sizes are prefixes. Raises
    ValueError beyond those sizes.
    """
    if not 1 <= n_validation <= PAPER_VALIDATION or not 1 <= n_heldout <= PAPER_HELDOUT:
        raise ValueError(f"the paper's pools hold {PAPER_VALIDATION} validation and {PAPER_HELDOUT} held-out cases")
    rng = random.Random(0)
    values: dict[int, None] = {}
    while len(values) < N_TRAIN + PAPER_VALIDATION + PAPER_HELDOUT:
        values[rng.randrange(2**31)] = None
    seeds = tuple(values)
    heldout = seeds[N_TRAIN + PAPER_VALIDATION :]
    return Pools(PoolKind.PAPER, seeds[:N_TRAIN], seeds[N_TRAIN:][:n_validation], heldout[:n_heldout])


def secret_pools(secret: bytes, n_validation: int, n_heldout: int) -> Pools:
    """Pools of 128-bit seeds derived from a secret of at least 16 bytes by keyed BLAKE2b of ``split:position``.

    Whoever lacks the secret cannot tell a seed from noise, and 128 bits cannot be searched. Ours, not the paper's.
    """
    if len(secret) < 16:
        raise ValueError("a pool secret has at least 16 bytes")

    def seeds(split: Split, n: int) -> tuple[int, ...]:
        return tuple(
            int.from_bytes(hashlib.blake2b(f"{split}:{i}".encode(), digest_size=16, key=secret).digest(), "little")
            for i in range(n)
        )

    return Pools(
        PoolKind.SECRET,
        seeds(Split.TRAIN, N_TRAIN),
        seeds(Split.VALIDATION, n_validation),
        seeds(Split.HELDOUT, n_heldout),
    )


def pool_from_document(document: Any, split: Split) -> tuple[int, ...]:
    """Seeds of one pool file's parsed JSON. Raises ValueError that says which case is wrong."""
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise ValueError('a pool file is {"env": …, "split": …, "cases": [{"seed": …}, …]}')
    named = document.get("split")
    expected = split.file_name.removesuffix(".json")
    if named not in (None, expected, str(split)):
        raise ValueError(f"it says split {named!r}, expected {expected!r}")
    seeds = []
    for position, case in enumerate(document["cases"]):
        seed = case.get("seed") if isinstance(case, dict) else None
        if isinstance(seed, str):
            raise ValueError(f'case {position}: its seed is a text; write a number without quotes: {{"seed": 7}}')
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f'case {position} has no integer seed of at least 0, such as {{"seed": 7}}')
        seeds.append(seed)
    return tuple(seeds)
