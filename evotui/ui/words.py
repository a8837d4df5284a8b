"""Figures and times as short words. Imports nothing: the home screen is painted before any record is loaded."""

from __future__ import annotations


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


def spread(value: float) -> str:
    """A standard deviation or error: three figures are enough."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


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
