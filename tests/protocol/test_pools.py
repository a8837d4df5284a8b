"""Pools: the paper's published values, disjointness, secrecy, pool files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.protocol.pools import (
    N_TRAIN,
    PoolKind,
    Pools,
    Split,
    paper_pools,
    pool_from_document,
    secret_pools,
)


def test_paper_pools_start_with_the_published_values() -> None:
    pools = paper_pools(64, 256)
    assert pools.kind is PoolKind.PAPER
    assert pools.train[:2] == (1654615998, 1806341205)
    assert pools.validation[:2] == (1106378843, 805970311)
    assert pools.heldout[:2] == (47113601, 1076138659)
    assert (len(pools.train), len(pools.validation), len(pools.heldout)) == (1024, 64, 256)


def test_smaller_paper_pools_are_prefixes() -> None:
    small, full = paper_pools(16, 32), paper_pools(64, 256)
    assert small.train == full.train
    assert small.validation == full.validation[:16]
    assert small.heldout == full.heldout[:32]


@pytest.mark.parametrize(("n_validation", "n_heldout"), [(0, 32), (65, 32), (16, 0), (16, 257)])
def test_paper_pools_have_a_size(n_validation: int, n_heldout: int) -> None:
    with pytest.raises(ValueError, match="64 validation and 256 held-out"):
        paper_pools(n_validation, n_heldout)


@settings(derandomize=True, max_examples=10, deadline=None)
@given(st.binary(min_size=16, max_size=64), st.integers(1, 64), st.integers(1, 256))
def test_secret_pools_depend_on_the_secret_alone(secret: bytes, n_validation: int, n_heldout: int) -> None:
    pools = secret_pools(secret, n_validation, n_heldout)
    again = secret_pools(secret, n_validation, n_heldout)
    for split in Split:
        assert pools.of(split) == again.of(split)
    assert (len(pools.train), len(pools.validation), len(pools.heldout)) == (N_TRAIN, n_validation, n_heldout)
    everything = [seed for split in Split for seed in pools.of(split)]
    assert len(set(everything)) == len(everything)
    assert all(0 <= seed < 2**128 for seed in everything)


def test_secret_seeds_use_all_128_bits() -> None:
    pools = secret_pools(b"a secret of some length", 64, 256)
    assert pools.seed_bits == 128
    ones = [sum(seed >> bit & 1 for seed in pools.train) for bit in range(128)]
    assert all(380 < count < 644 for count in ones)  # 512 ± 8 standard deviations


def test_another_secret_shares_no_seed() -> None:
    one, other = (secret_pools(bytes([k]) * 16, 16, 32) for k in (1, 2))
    assert not {s for split in Split for s in one.of(split)} & {s for split in Split for s in other.of(split)}


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        secret_pools(b"short", 16, 32)


@pytest.mark.parametrize(
    ("train", "validation", "heldout", "message"),
    [
        ((1, 2, 1), (3,), (4,), "case 2 of the train pool has the seed of case 0; a pool has each seed once"),
        ((1, 2), (2,), (4,), "case 0 of the validation pool has the seed of case 1 of the train pool; the three"),
        ((1,), (2,), (1,), "case 0 of the heldout pool has the seed of case 0 of the train pool"),
        ((), (2,), (1,), "the train pool is empty: it needs"),
        ((-1,), (2,), (1,), "integer of at least 0"),
        ((True,), (2,), (3,), "integer of at least 0"),
    ],
)
def test_pools_are_disjoint_and_whole(
    train: tuple[int, ...], validation: tuple[int, ...], heldout: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Pools(PoolKind.FILES, train, validation, heldout)


def test_repr_shows_no_seed() -> None:
    pools = paper_pools(16, 32)
    for shown in (repr(pools), str(pools), f"{[pools]}"):
        assert not any(str(seed) in shown for split in Split for seed in pools.of(split))


def test_pool_files_round_trip_and_hash_their_bytes() -> None:
    pools = paper_pools(16, 32)
    for split in Split:
        document = json.loads(pools.file_bytes(split, "gym/acrobot"))
        assert document["env"] == "gym/acrobot"
        assert pool_from_document(document, split) == pools.of(split)
    hashes = pools.hashes("gym/acrobot")
    assert set(hashes) == {"train", "validation", "heldout"}
    assert all(h.startswith("sha256:") and len(h) == 71 for h in hashes.values())
    assert hashes != pools.hashes("gym/pendulum")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1, 2], "a pool file is"),
        ({"cases": 3}, "a pool file is"),
        ({"cases": [{"seed": 1}, {"seed": "2"}]}, "case 1: its seed is a text; write a number"),
        ({"cases": [{"seed": -1}]}, "case 0 has no integer seed"),
        ({"cases": [{"seed": 7.0}]}, "case 0 has no integer seed"),
        ({"cases": [{"seeds": 7}]}, "case 0 has no integer seed"),
        ({"cases": [{"seed": True}]}, "case 0 has no integer seed"),
        ({"split": "heldout", "cases": [{"seed": 1}]}, "it says split 'heldout', expected 'train'"),
    ],
)
def test_bad_pool_documents_say_what_is_wrong(document: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pool_from_document(document, Split.TRAIN)
