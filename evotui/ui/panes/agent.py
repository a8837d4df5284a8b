"""The agent pane: the transcript, following its end; who the agent is in the title, what it costs in the foot."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from evotui.ui import costs, transcript
from evotui.ui.chrome import Line, Part
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.select import Eye
from evotui.ui.steering import DEAF
from evotui.ui.widgets.tail import TranscriptTail
from evotui.ui.words import plain_model


class AgentPane(Pane):
    number: ClassVar[int] = 3
    label: ClassVar[str] = "Agent"

    def __init__(self) -> None:
        super().__init__(id="agent")
        self._entries = {eye: transcript.Entries(hide=eye is Eye.AGENT) for eye in Eye}
        self._eye = Eye.OBSERVER
        self._marked: int | None = None
        self._picture: Picture | None = None
        self.waiting = False
        """Whether a wait is counted down: then the pane is drawn each second."""
        self.tail = TranscriptTail(id="tail")
        self.cost = Line(id="cost")
        self.cost.display = False

    def compose(self) -> ComposeResult:
        yield self.tail
        yield self.cost

    def draw(self, picture: Picture) -> None:
        state, eye = picture.state, picture.cursor.eye
        self._eye, self._picture = eye, picture
        known = self._entries[eye]
        entries = known.of(state)
        # The same ones again cost nothing.
        self.tail.set_entries(entries, known.pending(state, picture.live, picture.now), known.first_of)
        self.waiting = picture.live and known.waits(picture.now) > 0
        marked = picture.view.submission
        if marked != self._marked:
            self._marked = marked
            if picture.cursor.follow:
                self.tail.highlight(marked)
            else:
                self.tail.following = False
                self.tail.highlight(marked)
        self._retitle_for(picture)

    def follow(self) -> None:
        self.tail.follow()

    def _retitle_for(self, picture: Picture) -> None:
        state = picture.state
        name = state.agent_name or (state.opened.agent if state.opened is not None else "")
        parts = [Part(plain_model(name), "$text-accent", 90)]
        if state.agent_model and state.agent not in DEAF and plain_model(state.agent_model) not in name:
            parts.append(Part(plain_model(state.agent_model), "$text-muted", 50))
        if state.agent_session:
            parts.append(Part(f"session {state.agent_session[:8]}", "$text-muted", 10))
        if state.agent_live and picture.live:
            parts.append(Part("● live", "$text-success", 40))
        elif state.agent_ended:
            parts.append(Part(state.agent_ended.replace("_", " "), "$text-muted", 40))
        if self.tail.unfolded:
            parts.append(Part("unfolded", "$text-muted", 30))
        self.titled("", parts)
        left, right = costs.foot(picture.ledger, state, picture.view.submission, picture.limits)
        self.cost.show(left, right)
        if self.cost.display != bool(left):
            self.cost.display = bool(left)

    def scroll_lines(self, lines: int) -> None:
        self.tail.action_scroll_lines(lines)

    def scroll_pages(self, pages: float) -> None:
        self.tail.action_scroll_pages(pages)

    def scroll_edge(self, end: bool) -> None:
        if end:
            self.tail.follow()
        else:
            self.tail.action_go_home()

    def fold(self) -> None:
        """Unfold every long entry, or fold them again."""
        self.tail.action_toggle_folds()
        if self._picture is not None:
            self._retitle_for(self._picture)

    def plain(self) -> str:
        return transcript.plain(self.tail.entries)
