"""The built-in editor: one file of the policy, edited without leaving the screen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea


def fault(text: str, name: str) -> str:
    """Why the text is not Python, in a few words; "" where it is, or where it need not be."""
    if not name.endswith(".py"):
        return ""
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return ""


class CodeScreen(ModalScreen[str | None]):
    """Answers with the new text, or None where nothing shall be saved."""

    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = "TextArea"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape", "leave", "leave", show=False, priority=True),
        Binding("ctrl+c", "copy_or_leave", "leave", show=False, priority=True),
    ]

    def __init__(self, name: str, text: str) -> None:
        super().__init__()
        self._file = name
        self._before = text
        self._warned = False
        self.area = TextArea.code_editor(text, language="python" if name.endswith(".py") else None, id="code")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="code-dialog"):
            yield Static(Content(f"system/{self._file}").stylize("bold"), id="code-title")
            yield self.area
            yield Static(id="code-foot")

    def on_mount(self) -> None:
        self.area.theme = "vscode_dark" if self.app.current_theme.dark else "github_light"
        self._tell()

    @property
    def changed(self) -> bool:
        return self.area.text != self._before

    def _tell(self) -> None:
        wrong = fault(self.area.text, self._file)
        foot = Content("^s save · esc leave" + (" · changed" if self.changed else "")).stylize("$text-muted")
        if self._warned:
            foot = Content("esc again drops what you changed; ^s saves it").stylize("$text-warning")
        elif wrong:
            foot = Content.assemble((f"✗ {wrong}", "$text-error"), ("  ^s saves it all the same", "$text-muted"))
        self.query_one("#code-foot", Static).update(foot)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._warned = False
        self._tell()

    def action_save(self) -> None:
        self.dismiss(self.area.text if self.changed else None)

    def action_copy_or_leave(self) -> None:
        if self.area.selected_text:
            self.app.copy_to_clipboard(self.area.selected_text)
        else:
            self.action_leave()

    def action_leave(self) -> None:
        if self.changed and not self._warned:
            self._warned = True
            self._tell()
        else:
            self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.action_leave()
