"""The score pane: the history of returns, or the map of cases; after the run the verdict, marked as post-hoc."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from evotui.ui import figures
from evotui.ui.chrome import Line, Part
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.select import Eye, spotlit_view
from evotui.ui.widgets.budget import CaseMap
from evotui.ui.widgets.plot import ScorePlot
from evotui.ui.words import number, short


class ScorePane(Pane):
    number: ClassVar[int] = 4
    label: ClassVar[str] = "Score"

    def __init__(self) -> None:
        super().__init__(id="score")
        self._rows = figures.EpisodeRows()
        self._picture: Picture | None = None
        self.map = False
        self.plot = ScorePlot(id="plot")
        self.cases = CaseMap(id="cases")
        self.verdict = Line(id="verdict")
        self.cases.display = self.verdict.display = False

    def compose(self) -> ComposeResult:
        yield self.plot
        yield self.cases
        yield self.verdict

    def draw(self, picture: Picture) -> None:
        self._picture = picture
        state, view, eye = picture.state, picture.view, picture.cursor.eye
        selected = view.submission
        if self.map:
            spot = spotlit_view(state, picture.cursor)
            case = spot[1].case if spot is not None else None
            self.cases.show(figures.case_columns(state), selected, case)
        else:
            series = figures.score_series(state, eye, self._rows.of(state), picture.kinds, picture.live)
            self.plot.show(series, selected)
        verdict = figures.verdict(state, eye)
        self.verdict.show([Part(text, "$text-accent", keep) for text, keep in verdict])
        if self.verdict.display != bool(verdict):
            self.verdict.display = bool(verdict)
        self._retitle_for(picture)

    def _retitle_for(self, picture: Picture) -> None:
        state, eye = picture.state, picture.cursor.eye
        parts: list[Part] = []
        if self.map:
            parts.append(Part("cases × submissions", "$text-muted", 30))
        best = state.best_in_loop
        if best is not None and best.mean is not None:
            parts.append(Part(f"best {number(best.mean)} {short(best.index)}", "$text-success", 80))
            parts.append(Part("in-loop proxy", "$text-muted", 20))
        note = "c map" if not self.map else "c plot"
        if eye is Eye.AGENT:
            note = "agent's eye: nothing hidden is shown"
        self.titled(note, parts)

    def toggle_map(self) -> None:
        self.map = not self.map
        self.cases.display = self.map
        self.plot.display = not self.map
        if self._picture is not None:
            self.draw(self._picture)

    def plain(self) -> str:
        """Submissions as tab-separated values; hidden figures only for the observer."""
        if self._picture is None:
            return ""
        state, eye = self._picture.state, self._picture.cursor.eye
        hidden = eye is Eye.OBSERVER and state.finalizing is not None
        head = ["submission", "verdict", "cases", "mean", "std", "consumed"] + (["validation"] if hidden else [])
        lines = ["\t".join(head)]
        unfinished = "running" if self._picture.live else "unfinished"
        for sub in state.submissions:
            row = [short(sub.index), sub.verdict.value if sub.verdict else unfinished, str(sub.cost)]
            row += ["" if v is None else repr(v) for v in (sub.mean, sub.std)] + [str(sub.consumed_after)]
            if hidden:
                row.append("" if sub.val_score is None else repr(sub.val_score))
            lines.append("\t".join(row))
        if verdict := figures.verdict(state, eye):
            lines.append("# " + ", ".join(text for text, _ in verdict))
        return "\n".join(lines)
