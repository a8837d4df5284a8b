"""The application: themes, which screen comes first, opening and leaving runs. It holds no run state of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Union

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.command import Provider
from textual.screen import Screen

from evotui.ui import theme
from evotui.ui.colorless import instead
from evotui.ui.feed import EditFile, Feed, FrameSource, Launcher
from evotui.ui.terminal import keep_grounds

if TYPE_CHECKING:
    from evotui.ui.screens.run import RunScreen
    from evotui.ui.suitefeed import SuiteFeed

Start = Union[Literal["home"], tuple[Feed, FrameSource], "SuiteFeed"]


class EvotuiApp(App[None]):
    """``start`` is "home", an opened run or a suite; ``clock`` gives seconds since the epoch, ``edit_file`` is for
    tests."""

    TITLE = "evotui"
    AUTO_FOCUS = None
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = set()
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        launcher: Launcher,
        start: Start = "home",
        *,
        theme_name: str = theme.DEFAULT,
        clock: Callable[[], float] = time.time,
        edit_file: EditFile | None = None,
    ) -> None:
        # Textual loads a screen's styles when it is pushed; the first screen is not pushed, so its styles come here.
        first = "home" if start == "home" else "run" if isinstance(start, tuple) else "suite"
        super().__init__(css_path=["app.tcss", f"screens/{first}.tcss"])
        keep_grounds()
        if self.no_color:
            self._filters = instead(self._filters)
            theme_name = theme.CONTRAST.name
        self.launcher = launcher
        self.clock = clock
        self.ahead: list[events.Key] | None = None
        """Keys typed since a dialog was asked for, until it is there; None while none is on its way."""
        self._start = start
        self._edit_file = edit_file
        for each in theme.THEMES:
            self.register_theme(each)
        self.theme = theme_name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables where a theme of somebody else's has none."""
        return {"rule": "ansi_bright_black" if self.current_theme.ansi else "#7a7a7a"}

    def get_default_screen(self) -> Screen[None]:
        if self._start == "home":
            from evotui.ui.screens.home import HomeScreen

            return HomeScreen()
        if isinstance(self._start, tuple):
            return self.run_screen(*self._start)
        from evotui.ui.screens.suite import SuiteScreen

        return SuiteScreen(self._start)

    def on_mount(self) -> None:
        # The shell wrote over the screen meanwhile: nothing that was painted before is still there.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))

    # What is typed since a dialog was asked for, until it can be typed into, is the dialog's: no letter of an answer
    # may mean a command of the screen below. Keys that were on their way already come to `on_key`, later ones never
    # get further than `on_event`.

    async def on_event(self, event: events.Event) -> None:
        if self.ahead is not None and isinstance(event, events.Key) and not event.is_forwarded:
            self.ahead.append(event)
            return
        await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        if self.ahead is not None:
            self.ahead.append(event)
            event.stop()
            event.prevent_default()

    def type_again(self) -> None:
        """Type what was typed ahead into the dialog that is there now."""
        keys, self.ahead = self.ahead or [], None
        for key in keys:
            self.post_message(events.Key(key.key, key.character))

    def run_screen(self, feed: Feed, frames: FrameSource) -> RunScreen:
        from evotui.ui.screens.run import RunScreen

        return RunScreen(feed, frames, self.clock, self._edit_file)

    async def open_run(self, run: Path) -> None:
        """Show a run of the runs folder. Raises what the launcher raises."""
        await self.show_run(*await self.launcher.open(run))

    async def resume_run(self, screen: RunScreen) -> None:
        """Take the run on the screen up again, on a screen of its own. Raises what the launcher raises."""
        await screen.feed.close()  # a run that broke off here still holds its folder
        feed, frames = await self.launcher.resume(screen.feed.run.root)
        await screen.close()
        if len(self.screen_stack) > 1:
            self.switch_screen(self.run_screen(feed, frames))
        else:  # Textual cannot replace its first screen: it stays below, closed, and is never returned to
            self.push_screen(self.run_screen(feed, frames))

    async def show_run(self, feed: Feed, frames: FrameSource) -> None:
        """Show a run that was opened or started."""
        await self.push_screen(self.run_screen(feed, frames))

    async def action_quit(self) -> None:
        """Textual's own key for quitting asks as our own does."""
        from evotui.ui.screens.base import CommandScreen

        if isinstance(self.screen, CommandScreen):
            self.screen.action_command("leave")

    def action_help_quit(self) -> None:
        """Textual's hint on ctrl+c would name the wrong key; each of our screens says what ctrl+c does."""

    async def leave(self, screen: RunScreen) -> None:
        """Close a run's screen: back to what lies below, or out."""
        from evotui.ui.screens.run import RunScreen

        await screen.close()
        below = self.screen_stack[-2] if len(self.screen_stack) > 1 else None
        if below is None or (isinstance(below, RunScreen) and below.closed):
            self.exit()
        else:
            self.pop_screen()
