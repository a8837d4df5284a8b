"""The run screen: what its keys do, one method for each command of ``commands.RUN``."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from evotui.protocol.budget import Rejected
from evotui.ui import select
from evotui.ui.bundles import read_folder
from evotui.ui.feed import Controls
from evotui.ui.resuming import wanted
from evotui.ui.screens.confirm import Choice, Confirm
from evotui.ui.screens.runview import RunView
from evotui.ui.select import Base, Eye

STAY = Choice("stay", "n", "No, stay")
STOP = Choice("stop", "y", "Yes, stop it", grave=True)
FINISH = Choice("finish", "f", "Score what there is")


class RunScreen(RunView):
    """``commands.RUN`` and this class are to be read side by side."""

    # ── the cursor ───────────────────────────────────────────────────────────────────────────────────────────────

    def do_older(self) -> None:
        self.choose(select.older(self.state, self.cursor))

    def do_newer(self) -> None:
        self.choose(select.newer(self.state, self.cursor))

    def entered(self, text: str) -> bool:
        """``:12`` and ``:s012`` select a submission."""
        digits = text.lower().removeprefix("s")
        if not digits.isdecimal():
            return False
        count = len(self.state.submissions)
        if int(digits) < count:
            self.choose(select.pick(self.cursor, int(digits)))
        else:
            self.say(f"there is no submission {int(digits)}: there are {count}", "warning")
        return True

    def do_follow(self) -> None:
        self._frozen = None
        self.choose(select.follow(self.cursor))
        self.agent.follow()
        self.changed()

    def do_display(self) -> None:
        self._frozen = None if self.frozen else self._newest
        self.redraw()
        self.changed()

    def do_eye(self) -> None:
        eye = Eye.AGENT if self.cursor.eye is Eye.OBSERVER else Eye.OBSERVER
        self.choose(replace(self.cursor, eye=eye))
        self.say("agent's eye: no hidden figure is shown" if eye is Eye.AGENT else "observer's eye")

    # ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def controls(self) -> Controls:
        controls = self.feed.controls
        assert controls is not None, "a command that needs controls is not offered without them"
        return controls

    async def do_pause(self) -> None:
        if self._newest.gate == "run":
            self.say("the run pauses before the next submission")
            await self.controls.pause()
        else:
            self.say("the run goes on")
            await self.controls.resume()

    async def do_step_iteration(self) -> None:
        self.say("one iteration: edit, submission, feedback")
        await self.controls.step_iteration()

    async def do_step_phase(self) -> None:
        self.say("one phase")
        await self.controls.step_phase()

    async def do_stop(self) -> None:
        if text := self.get_selected_text():  # ctrl+c with a selection means what it means everywhere
            self.copy(text, "the selection")
            return
        finalizing = self._newest.finalizing is not None
        choices = [STAY, STOP] if finalizing or not self._newest.submissions else [STAY, FINISH, STOP]
        await self._stop("Stop this run?", "The record stays whole. The episodes spent stay spent.", choices)

    async def _stop(self, question: str, detail: str, choices: list[Choice]) -> str:
        answer = await self.app.push_screen_wait(Confirm(question, detail, choices))
        if self.feed.controls is None or answer == "stay":
            return answer
        if answer == "finish":
            self.say("the agent ends; then what there is will be validated and scored")
            await self.controls.finalize()
        elif answer == "stop":
            self.say("stopping")
            await self.controls.stop()
        return answer

    async def do_leave(self) -> None:
        if self.feed.controls is not None and self.feed.live:
            answer = await self._stop(
                "Leave a run that is still going?",
                "This process drives it: leaving stops it. The record stays whole.",
                [STAY, Choice("stop", "y", "Stop and leave", grave=True)],
            )
            if answer != "stop":
                return
        await self.evotui.leave(self)

    async def do_resume(self) -> None:
        if await wanted(self.app, self.feed.run.root.name, self._newest):
            self.say("resuming …")
            await self.evotui.resume_run(self)

    # ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────

    async def do_edit(self) -> None:
        controls = self.controls
        before = await asyncio.to_thread(read_folder, controls.system)
        path = controls.system / "policy.py"
        player = self.environment.player
        if player is not None:
            player.hold(True)
        try:
            await self._open_editor(path)
        finally:
            if player is not None:
                player.hold(self.frozen)
        changed = await controls.edited(before)
        self.say(f"edited {', '.join(changed)}: u submits it" if changed else "nothing was changed")

    async def _open_editor(self, path: Path) -> None:
        if self._edit_file is not None:
            await self._edit_file(path)
            return
        from evotui.ui.editor import edit

        await edit(self.app, path)

    async def do_submit(self) -> None:
        from evotui.ui.screens.submit import SubmitScreen

        state = self._newest
        last = state.submissions[-1].cases if state.submissions else ()
        cases = await self.app.push_screen_wait(SubmitScreen(state.header.n_train, state.budget, last))
        if not cases:
            return
        self.say(f"submitting cases {cases}")
        try:
            answer: dict[str, Any] = await self.controls.submit(cases)
        except Rejected as refused:
            self.say(f"rejected, nothing was charged: {refused.message}", "error")
        else:
            self.say(f"{answer.get('submit_id', 'submission')}: {answer.get('status', 'done')}")

    def do_diff_mode(self) -> None:
        self.policy.next_mode()

    def do_diff_against(self) -> None:
        order = list(Base)
        base = order[(order.index(self.cursor.base) + 1) % len(order)]
        self.choose(replace(self.cursor, base=base))
        self.say(f"diff against the {'starting policy' if base is Base.START else base.value}")

    def do_next_hunk(self) -> None:
        self.policy.view.next_hunk()

    def do_previous_hunk(self) -> None:
        self.policy.view.previous_hunk()

    # ── the environment ──────────────────────────────────────────────────────────────────────────────────────────

    def _spot(self) -> int:
        found = select.spotlit_view(self.state, self.cursor)
        assert found is not None, "a command that needs an episode is not offered without one"
        return found[0]

    def do_previous_episode(self) -> None:
        self.choose(select.next_episode(self.state, self.cursor, self._spot(), -1))

    def do_next_episode(self) -> None:
        self.choose(select.next_episode(self.state, self.cursor, self._spot(), 1))

    def do_spot(self) -> None:
        self.choose(select.next_spot(self.state, self.cursor, self._spot()))

    def do_replay(self) -> None:
        self.environment.replay()

    def do_faster(self) -> None:
        self.environment.faster(1)

    def do_slower(self) -> None:
        self.environment.faster(-1)

    def do_frame_on(self) -> None:
        self.environment.frame_on()

    def do_frame_back(self) -> None:
        self.environment.frame_back()

    def do_case_map(self) -> None:
        self.score.toggle_map()

    # ── panes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def do_next_pane(self) -> None:
        self.go(self._current + 1)

    def do_previous_pane(self) -> None:
        self.go(self._current - 1)

    def do_pane_1(self) -> None:
        self.go(0)

    def do_pane_2(self) -> None:
        self.go(1)

    def do_pane_3(self) -> None:
        self.go(2)

    def do_pane_4(self) -> None:
        self.go(3)

    def do_pane_5(self) -> None:
        self.go(4)

    def do_maximise(self) -> None:
        self._layout = replace(self._layout, maximised=not self._layout.maximised)
        self.lay_out()

    def do_reset(self) -> None:
        self._layout = replace(self._layout, maximised=False)
        self.lay_out()
        self.policy.set_mode(0)
        self.environment.normal_speed()
        if self.score.map:
            self.score.toggle_map()
        self.choose(replace(self.cursor, base=Base.PREVIOUS, spot=select.Spot.AUTO))

    def do_down(self) -> None:
        self._vertical(1)

    def do_up(self) -> None:
        self._vertical(-1)

    def _vertical(self, by: int) -> None:
        """Lines in a pane that scrolls; in the environment, the rule that chooses the episode."""
        if self.current is not self.environment:
            self.current.scroll_lines(by)
        elif self.situation().episode:
            self.choose(select.next_spot(self.state, self.cursor, self._spot(), by))

    def do_half_down(self) -> None:
        self.current.scroll_pages(0.5)

    def do_half_up(self) -> None:
        self.current.scroll_pages(-0.5)

    def do_top(self) -> None:
        self.current.scroll_edge(False)

    def do_bottom(self) -> None:
        self.current.scroll_edge(True)

    def do_copy(self) -> None:
        self.copy(self.current.plain(), f"the {self.current.label.lower()} pane")
