"""The environment pane: the spotlit episode, replayed at a watchable speed whatever the speed of the rollouts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker

from evotui.record import events as e
from evotui.record.state import RunState
from evotui.ui.chrome import Line, Part
from evotui.ui.feed import FrameSource, Progress, Shot
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.player import Player
from evotui.ui.select import Cursor, spotlit_view, stage_words
from evotui.ui.values import Naming
from evotui.ui.widgets.frame import FrameView
from evotui.ui.widgets.strip import StepValues, ValuesStrip
from evotui.ui.words import number, short

DWELL_SECONDS = 4.0
"""How long an episode is watched before a newer one takes the pane by itself, unless it was over sooner."""
LOOPS_WHEN_DONE = 1
"""Playings of an episode of a run that has ended; then the pane rests on the last frame, until a key, and costs
nothing."""
_LEAST_BESIDE, _MOST_BESIDE, _BESIDE_GAP = 26, 64, 2
"""Cells of width of the values beside a picture, and of the gap between them."""

Spotlight = tuple[int, e.EpisodeFinished, str]


class EnvironmentPane(Pane):
    class DrawnKnown(Message):
        """It is known now whether there is a drawing in characters."""

    number: ClassVar[int] = 2
    label: ClassVar[str] = "Environment"

    def __init__(self, source: FrameSource, progress: Callable[[], Sequence[Progress]]) -> None:
        super().__init__(id="environment")
        self._source = source
        self._progress = progress
        self._picture: Picture | None = None
        self._naming: Naming | None = None
        self._player: Player | None = None
        self._worker: Worker[None] | None = None
        self._spotlight: Spotlight | None = None
        self._cursor: Cursor | None = None
        self._later: Timer | None = None
        self._values: StepValues | None = None
        self.drawn = False
        """Whether the environment has a drawing in characters beside its picture."""
        self._as_text: bool | None = None
        """Whether the drawing was asked for, or the picture; None: nobody said."""
        self._across = 0
        """Characters across the drawing on show; 0 for a picture."""
        self._cut = ""
        """Which lines of a drawing are on show, where not all are."""
        self._aspect = 0.0
        """Width of the pictures by their height; 0 while none was seen."""
        self.frame = FrameView(id="frame")
        self.values = ValuesStrip(id="values")
        self.playing = Line(id="playing")

    def compose(self) -> ComposeResult:
        with Container(id="scene"):
            yield self.frame
            yield self.values
        yield self.playing

    def on_mount(self) -> None:
        self.set_interval(1.0, self.tell)

    # ── where the values go ──────────────────────────────────────────────────────────────────────────────────────

    def on_resize(self) -> None:
        super().on_resize()
        self._arrange()

    def _shaped(self, height: int, width: int) -> None:
        """Pictures are of this shape: the values may be better off beside them."""
        aspect = width / max(1, height)
        if not 0.87 < aspect / (self._aspect or -1.0) < 1.15:
            self._aspect = aspect
            self._arrange()

    def _lettered(self, across: int) -> None:
        """A drawing of so many characters is shown, which does not shrink; 0: a picture."""
        if across != self._across:
            self._across = across
            self._arrange()

    def _arrange(self) -> None:
        width, height = self.content_size.width, self.content_size.height - 1
        below = 1 if height < 12 else 3
        cells = cells_beside(width, height, self._aspect, below) if self._aspect else 0
        if self._across:
            left = width - self._across - _BESIDE_GAP
            cells = min(left, _MOST_BESIDE) if left >= _LEAST_BESIDE else 0
        if cells:
            self.values.styles.width = cells
        else:
            self.values.styles.clear_rule("width")
        self.set_class(bool(cells), "-beside")

    @property
    def player(self) -> Player | None:
        return self._player

    # ── what is on show ──────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, picture: Picture) -> None:
        self._picture = picture
        moved = self._cursor is not None and _choice(self._cursor) != _choice(picture.cursor)
        self._cursor = picture.cursor
        if self._naming is None and picture.state.opened is not None:
            self._naming = Naming(picture.state.opened)
        wanted = spotlit_view(picture.state, picture.cursor)
        if wanted is None:
            self._clear(why_dark(picture))
        elif not self._is_shown(wanted):
            player = self._player
            wait = 0.0 if moved or player is None or player.rounds else player.started_at + DWELL_SECONDS - monotonic()
            if wait <= 0:
                self._play(wanted)
            elif self._later is None:
                self._later = self.set_timer(wait, self._take_newer)
        else:
            self._spotlight = wanted  # why it was chosen may be another reason now
            if moved and self._player is not None and self._player.ended:
                self._play(wanted)
        if self._player is not None:
            self._player.hold(picture.frozen)
            if not picture.live:
                self._player.last_round()
        self._retitle_for(picture)
        self.tell()

    def _is_shown(self, wanted: Spotlight) -> bool:
        return self._spotlight is not None and (self._spotlight[0], self._spotlight[1]) == (wanted[0], wanted[1])

    def _take_newer(self) -> None:
        self._later = None
        if self._picture is not None:
            self.draw(self._picture)

    def _clear(self, why: str) -> None:
        self._stop()
        self._spotlight = None
        self._values = None
        self.frame.show_notice(why)
        self.values.show(None)

    def _stop(self) -> None:
        if self._later is not None:
            self._later.stop()
            self._later = None
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        self._player = None

    def _play(self, wanted: Spotlight, start: int = 0, still: bool = False) -> None:
        """Play an episode from a step; ``still`` shows no more than what follows that step."""
        rate = self._player.rate if self._player is not None and self._is_shown(wanted) else None
        self._stop()
        self._spotlight = wanted
        submission, episode, _ = wanted
        player = Player(self._source, submission, episode.position, episode.length, self._show, self._played)
        if rate is not None:
            player.rate = rate
        player.held = self._picture is not None and self._picture.frozen
        self._player = player
        width, height = self.frame.pixel_size
        if self._values is None:
            self.frame.show_notice(f"{short(submission)}: making the frames of episode {episode.episode}")
        if width and height:
            self._worker = self.run_worker(
                partial(self._run, player, width, height, start, still), group="frames", exclusive=True
            )

    async def _run(self, player: Player, width: int, height: int, start: int, still: bool) -> None:
        live = self._picture is not None and self._picture.live
        loops = 0 if still else None if live else LOOPS_WHEN_DONE
        try:
            await player.run(width, height, start, loops)
        except Exception as error:  # whatever the frames' process says is told in the pane; the run does not care
            self.frame.show_notice(f"no frames: {error}")

    @property
    def as_text(self) -> bool:
        """Whether the drawing in characters is on show. Without colours it says more than the picture would."""
        return self.drawn and (self.app.no_color if self._as_text is None else self._as_text)

    def toggle_text(self) -> None:
        """The drawing in characters in place of the picture, or the other way round."""
        self._as_text = not self.as_text
        if self._player is not None and self._player.shot is not None:
            self._show(self._player.shot)
        self.tell()

    def _show(self, shot: Shot) -> None:
        drawn = shot.pixels is not None and bool(shot.text)
        if drawn != self.drawn:
            self.drawn = drawn
            self.post_message(self.DrawnKnown())
        self._cut = ""
        if self.as_text:
            lines = shot.text.splitlines()
            self._lettered(max(map(cell_len, lines), default=0))
            top, end = lines_shown(lines, self.frame.size.height)
            if end - top < len(lines):
                self._cut = f"lines {top + 1}–{end} of {len(lines)}"
            self.frame.show_text("\n".join(lines[top:end]))
        elif shot.pixels is not None:
            self._lettered(0)
            self._shaped(*shot.pixels.shape[:2])
            self.frame.show(shot.pixels)
        elif shot.text:
            self.frame.show_text(shot.text)
        else:
            self.frame.show_notice(shot.why or "no frame")
        if self._naming is not None:
            self._values = self._naming.step(shot)
            self.values.show(self._values)

    def _played(self) -> None:
        """The player stands otherwise: a round is over, it was held, its speed changed."""
        if self._later is not None and self._player is not None and self._player.rounds:
            self._later.stop()
            self._take_newer()
        else:
            self.tell()

    def on_frame_view_pixel_size_changed(self, message: FrameView.PixelSizeChanged) -> None:
        message.stop()
        if self._spotlight is not None and message.pixel_size != (0, 0):
            player = self._player
            over = player is not None and player.ended  # then in its new size it rests, too
            self._play(self._spotlight, player.step if player is not None else 0, over)

    # ── words ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _retitle_for(self, picture: Picture) -> None:
        parts: list[Part] = []
        shown = self._spotlight
        if shown is not None:
            submission, episode, why = shown
            width = picture.state.width()
            parts += [
                Part(short(submission), "$text-accent", 90),
                Part(f"ep_{episode.episode:0{width}d} · case {episode.case}", "", 60),
                Part(f"return {number(episode.return_)}", "bold", 70),
                Part(why, "$text-muted", 40),
            ]
            if episode.fault is not None:
                parts.append(Part(f"✕ {episode.fault.kind.value.replace('_', ' ')}", "$text-error", 80))
            elif episode.success:
                parts.append(Part("✓ success", "$text-success", 30))
        self.titled("h l episode · b spotlight", parts)

    def tell(self) -> None:
        """Say how the episode plays, and what is rolling out meanwhile."""
        left: list[Part] = []
        player, shown = self._player, self._spotlight
        if player is not None and shown is not None:
            if player.ended:
                left.append(Part("■ ended", "$text-muted", 50))
                left.append(Part("r replays", "$text-muted", 20))
            elif player.held:
                left.append(Part("‖ still", "$text-warning", 50))
                left.append(Part(", . step", "$text-muted", 20))
            else:
                left.append(Part("▶", "$text-success", 50))
            left.append(Part(player.speed, "", 40))
            if self._cut:
                left.append(Part(self._cut, "$text-warning", 42))
            if player.behind is not None:
                left.append(Part(slow_words(player.behind), "$text-warning", 45))
        right = []
        if self._picture is not None:
            under_way = self._progress()
            said = rolling(self._picture, under_way)
            right = [Part(text, "$text-muted", 30 - i) for i, text in enumerate(said)]
            if shown is None and (lines := bars(self._picture, under_way)):
                # Nothing to look at yet: then at least how far everything is.
                self.frame.show_text("\n".join([why_dark(self._picture), "", *lines]))
                right = right[:1]
        self.playing.show(left, right)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self) -> None:
        if self._spotlight is not None:
            self._play(self._spotlight)

    def faster(self, by: int) -> None:
        if self._player is not None:
            ended = self._player.ended
            self._player.faster(by)
            if ended:
                self.replay()

    def normal_speed(self) -> None:
        if self._player is not None and self._spotlight is not None:
            self.replay()

    def frame_on(self) -> None:
        if self._player is not None:
            self._player.step_on()

    def frame_back(self) -> None:
        player = self._player
        if player is None or self._spotlight is None:
            return
        if player.ended and player.forgotten:
            self._play(self._spotlight, player.step - 1)
        else:
            player.step_back()

    def plain(self) -> str:
        v = self._values
        if v is None or self._spotlight is None:
            return ""
        lines = [
            f"{short(self._spotlight[0])} episode {self._spotlight[1].episode} case {self._spotlight[1].case} t {v.t}"
        ]
        lines += [f"{r.name}\t{r.value}" for r in v.observation]
        lines += [f"action {r.name}\t{r.value}" for r in v.action]
        if v.action_name:
            lines.append(f"action\t{v.action_name}")
        lines += [f"reward\t{v.reward}", f"return\t{v.return_}"]
        return "\n".join(lines)


def cells_beside(width: int, height: int, aspect: float, below: int) -> int:
    """Cells of width for the values beside a picture of that aspect; 0 where they are better off below it.

    ``width`` and ``height`` are the cells of both together, ``below`` the lines that the values take below. Beside wins
    where the picture loses next to nothing by it, since there many more values fit, under their whole names.
    """
    if width < _LEAST_BESIDE + 8 or height < 6:
        return 0
    under = min(width, 2 * (height - below) * aspect)
    beside = min(width - _LEAST_BESIDE - _BESIDE_GAP, 2 * height * aspect)
    if beside**2 < 0.8 * under**2:
        return 0
    return min(width - math.ceil(beside) - _BESIDE_GAP, _MOST_BESIDE)


_LOOKING = re.compile(r"\^\^|>>|<<|VV")
"""How the drawing of a grid writes whoever moves in it: looking up, right, left, down."""


def lines_shown(lines: Sequence[str], room: int) -> tuple[int, int]:
    """The first and the last + 1 of the lines of a drawing for so many: all, else those around who moves in it."""
    if len(lines) <= room or room < 1:
        return 0, len(lines)
    at = next((i for i, line in enumerate(lines) if _LOOKING.search(line)), 0)
    top = min(max(at - room // 2, 0), len(lines) - room)
    return top, top + room


def _choice(cursor: Cursor) -> tuple[object, ...]:
    return cursor.follow, cursor.submission, cursor.position, cursor.spot


def why_dark(picture: Picture) -> str:
    """The sentence in place of a frame."""
    state, view = picture.state, picture.view
    if view.submission is not None:
        sub = state.submissions[view.submission]
        if sub.verdict is not None and not sub.ok:
            return f"{short(sub.index)} rolled nothing out: {sub.verdict.value.replace('_', ' ')}"
        if sub.verdict is None:
            return f"{short(sub.index)}: episodes are shown as they finish"
        return f"{short(sub.index)} has no episodes"
    if state.opened is None:
        return "the run is opening"
    if state.ended is not None:
        return "no episode was rolled out in this run"
    return f"{_title(state)}: the first finished episode appears here"


def _title(state: RunState) -> str:
    return state.opened.env_version if state.opened is not None else ""


def slow_words(pace: float) -> str:
    """That frames come slower than asked for: ``pace`` in environment steps a second, 0 while none comes."""
    return f"slow: {pace:.0f} steps/s" if pace >= 1 else "drawing …"


def bars(picture: Picture, progress: Sequence[Progress], width: int = 12) -> list[str]:
    """A line for each episode under way: its steps of the most there can be, as a bar, and its return so far."""
    state = picture.state
    active = state.active
    if active is None or not picture.live:
        return []
    most = max(1, state.header.max_episode_steps)
    lines = []
    for p in progress:
        if p.submission == active.index and p.position < active.cost:
            filled = min(width, p.step * width // most)
            bar = "━" * filled + "─" * (width - filled)
            steps = f"{p.step:>{len(str(most))}}/{most}"
            lines.append(f"case {active.cases[p.position]:<3} {bar} t {steps}  return {number(p.return_)}")
    return lines


def rolling(picture: Picture, progress: Sequence[Progress]) -> list[str]:
    """What is rolling out right now: "rolling out 3/8", then each episode under way."""
    state = picture.state
    active = state.active
    if active is None or not picture.live:
        return []
    under_way = [p for p in progress if p.submission == active.index and p.position < active.cost]
    words = stage_words(state)[1]
    return [f"{short(active.index)} {words}"] + [
        f"case {active.cases[p.position]} t {p.step} return {number(p.return_)}" for p in under_way[:4]
    ]
