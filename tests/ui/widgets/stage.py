"""A stage for one widget, and plain data to draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from evotui.ui.widgets.budget import BudgetFigures, Charge
from evotui.ui.widgets.casemap import CaseColumn
from evotui.ui.widgets.diff import ConstantRow, DiffInput, FilePair
from evotui.ui.widgets.plot import Mark, PostHocPoint, ReferenceLine, ScoreSeries, SubmissionPoint
from evotui.ui.widgets.strip import Reading, StepValues
from evotui.ui.widgets.tail import Entry, Kind


class Stage(App[None]):
    """One widget in a pane; keeps the messages that reach the app."""

    CSS = "#pane { border: round $primary 50%; padding: 0 1; }"

    def __init__(self, make: Callable[[], Widget], theme: str = "textual-dark", bare: bool = False) -> None:
        super().__init__()
        self._make = make
        self._first_theme = theme
        self._bare = bare
        self.messages: list[Message] = []

    def compose(self) -> ComposeResult:
        self.widget = self._make()
        if self._bare:
            yield self.widget
        else:
            with Container(id="pane"):
                yield self.widget

    def on_mount(self) -> None:
        self.theme = self._first_theme

    def keep(self, message: Message) -> None:
        """Keep a message for the test."""
        self.messages.append(message)


def text_of(widget: Widget) -> list[str]:
    """What the widget shows, line by line."""
    return [strip.text for strip in widget.render_lines(widget.size.region)]


def score_series(post_hoc: bool = True) -> ScoreSeries:
    """A run of ten submissions with every kind of mark."""
    rng = np.random.default_rng(3)
    levels = [22, 40, 120, 95, None, 260, 410, 405, 300, 470]
    marks = [Mark.BEST, Mark.BEST, Mark.BEST, Mark.FLAT, Mark.FAILED, Mark.BEST, Mark.BEST, Mark.RETEST]
    marks += [Mark.ROLLBACK, Mark.BEST]
    episodes: list[tuple[float, float, int]] = []
    submissions: list[SubmissionPoint] = []
    best: list[tuple[float, float]] = []
    x = 0
    for index, (level, mark) in enumerate(zip(levels, marks, strict=True)):
        count = 16 if index % 3 == 0 else 8
        if level is None:
            x += count
            submissions.append(SubmissionPoint(index, x, None, mark=mark))
            continue
        returns = np.clip(rng.normal(level, 10 + level * 0.15, count), 5, 500)
        episodes += [(float(x + k + 1), float(returns[k]), index) for k in range(count)]
        x += count
        half = float(returns.std() / count**0.5)
        submissions.append(SubmissionPoint(index, x, float(level), level - half, level + half, mark))
        if mark is Mark.BEST:
            best.append((x, float(level)))
    after: tuple[PostHocPoint, ...] = ()
    if post_hoc:
        after = tuple(
            PostHocPoint("validation", p.x_end, p.mean * 0.95, submission=p.index)
            for p in submissions
            if p.mean is not None
        )
        after += (PostHocPoint("held-out", 128, 452.0, 440.0, 464.0, submission=9),)
    return ScoreSeries(
        tuple(episodes),
        tuple(submissions),
        tuple(best),
        after,
        post_hoc_best=((16, 20.9), (24, 38.0), (32, 114.0), (104, 390.0)) if post_hoc else (),
        budget=128,
        references=(ReferenceLine("random", 22.0),),
    )


BEFORE = '''"""Cart-pole: a linear controller."""

import numpy as np

KX, KV = 0.0, 0.4
K_ANGLE = 12.0
K_RATE = 2.0
LIMIT = 0.2


class Policy:
    """Pushes towards the falling side."""

    def __init__(self, obs_space, action_space, meta):
        self.last = 0.0
        self.n = 0

    def reset(self, seed=None):
        self.last = 0.0

    def features(self, obs):
        x, v, angle, rate = obs
        return np.array([x, v, angle, rate])

    def helper(self):
        # nothing to see here
        return [i for i in range(10) if i % 2]

    def act(self, obs):
        x, v, angle, rate = obs
        force = K_ANGLE * angle + K_RATE * rate
        if force > 0:
            return 1
        return 0
'''
AFTER = (
    BEFORE.replace("KX, KV = 0.0, 0.4", "KX, KV = 0.3, 0.55")
    .replace("K_ANGLE = 12.0", "K_ANGLE = 14.5")
    .replace("LIMIT = 0.2\n", "LIMIT = 0.2\nBAND = 0.05\n")
    .replace(
        "        if force > 0:\n            return 1\n        return 0\n",
        "        # inside the band keep pushing as before\n        if abs(force) < BAND:\n"
        "            return self.last\n        self.last = 1 if force > 0 else 0\n        return self.last\n",
    )
)
DIFF = DiffInput(
    (FilePair("system/policy.py", BEFORE, AFTER), FilePair("system/energy.py", None, "GAIN = 2.5\n")),
    (ConstantRow("K_ANGLE", 12.0, 14.5), ConstantRow("KX", 0.0, 0.3), ConstantRow("BAND", None, 0.05)),
    "s004",
    "s005",
)
ENTRIES = (
    Entry(Kind.NOTE, "search starts", 0),
    Entry(Kind.THOUGHT, "The angular rate tells where the angle will be: a weighted sum should do better.", 1.2),
    Entry(Kind.EDIT, "linear combination of angle and rate", 2.1, "system/policy.py", 1),
    Entry(Kind.TOOL_CALL, '{"cases": "0:16"}', 2.4, "submit", 1),
    Entry(Kind.TOOL_RESULT, "\n".join(f"step {i:3d} angle {i * 0.003:+.3f}" for i in range(40)), 2.9, submission=1),
    Entry(Kind.SUBMISSION, "16 cases · raised IndexError in act()", 3.0, "s001", 1, ok=False),
    Entry(Kind.ERROR, "IndexError: index 4 is out of bounds", 3.1, submission=1),
    Entry(Kind.MESSAGE, "One field too far. Fixed; the form stays.", 4.0, submission=2),
    Entry(Kind.SUBMISSION, "16 cases · mean 312.4 ± 18.2 · ★ new best", 3661.0, "s002", 2),
)
BUDGET = BudgetFigures(
    128,
    (Charge(0, 8), Charge(1, 16), Charge(2, 8, failed=True), Charge(3, 16), Charge(4, 16, running=True, done=7)),
    ("5 submissions", "24 since best", "00:42"),
    selected=3,
    rejected=1,
)
COLUMNS = tuple(
    CaseColumn(s, tuple((c, None if (s * c) % 29 == 28 else float(s * 10 + c)) for c in range(s % 3, 30, 1 + s % 4)))
    for s in range(12)
)
STEP = StepValues(
    213,
    (
        Reading("cart position", -0.812, -2.4, 2.4),
        Reading("cart velocity", 0.3, float("-inf"), float("inf")),
        Reading("pole angle", 0.031, -0.21, 0.21),
        Reading("angular velocity", -1.2e-4),
    ),
    action_name="→ right",
    reward=1.0,
    return_=213.0,
)
