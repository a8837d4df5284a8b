"""Figures and times as short words. Imports nothing heavy: the home screen is painted before any record is loaded."""

from __future__ import annotations

import math


def short(submission: int) -> str:
    """``s004``: what a submission is called on the screen."""
    return f"s{submission:03d}"


def plain_model(name: str) -> str:
    """A model's name without its provider: ``anthropic/claude-x`` is ``claude-x``."""
    return name.rsplit("/", 1)[-1] or name


def elapsed(seconds: float) -> str:
    """``00:42``, ``1:05:03``, ``2d 03:04``."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}d {hours:02d}:{minutes:02d}"
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes:02d}:{secs:02d}"


def standard_error(std: float, n: int) -> float:
    """Standard error of a mean of ``n`` values whose population standard deviation is ``std``; 0 for one value."""
    return std / math.sqrt(n - 1) if n > 1 else 0.0


def measured(mean: float, error: float | None) -> str:
    """A mean with its standard error: two figures of the error, the mean to the same place: ``0.977 ± 0.015``.

    None is a mean of one value, of which no error is known.
    """
    if error is None or not math.isfinite(error) or not math.isfinite(mean):
        return number(mean)
    if error < 1e-6 or abs(mean) >= 1e6:
        return f"{number(mean)} ± {number(error)}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:.{places}f} ± {error:.{places}f}"


def mean_of(mean: float, std: float, n: int) -> str:
    """A mean of ``n`` values with its standard error, where there is one. ``±`` is this on every screen."""
    return measured(mean, standard_error(std, n) if n > 1 else None)


def number(value: float) -> str:
    """A return or a score with about four figures: 213, 92.41, -0.0312, 1.2e+06."""
    if value != value:
        return "nan"
    size = abs(value)
    if size >= 1e6:
        return f"{value:.3g}"
    if size >= 1000 or value == int(value):
        return f"{value:.0f}"
    if size >= 100:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3g}"
