"""A sequence that only grows, shared between successive states: appending costs O(1), old states keep their length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Grown(Sequence[T], Generic[T]):
    """An immutable view of the first ``n`` items of a shared list.

    ``add`` appends in place when this view is the newest, else it copies first, so two histories that branch from one
    state never see each other's items. Not meant for concurrent writers.
    """

    __slots__ = ("_items", "_n")

    def __init__(self, items: list[T] | None = None) -> None:
        self._items: list[T] = items if items is not None else []
        self._n = len(self._items)

    def add(self, item: T) -> Grown[T]:
        items = self._items if len(self._items) == self._n else self._items[: self._n]
        items.append(item)
        return Grown(items)

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._items[i] for i in range(*index.indices(self._n))]
        if index < 0:
            index += self._n
        if not 0 <= index < self._n:
            raise IndexError("index out of range")
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        items = self._items
        for i in range(self._n):
            yield items[i]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grown):
            return NotImplemented
        return self._n == other._n and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Grown({self._n} items)"
