"""The home screen and the new-run dialog."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from evotui.protocol.words import counted
from evotui.record.lock import Lock
from evotui.record.rundir import RunDir
from evotui.record.summary import RunSummary, summary
from evotui.ui import runlist
from evotui.ui.app import EvotuiApp
from evotui.ui.preview import best_of, budget_words, marks_of, series_of, standing
from evotui.ui.resuming import plan, read_state
from evotui.ui.screens.home import HomeScreen
from evotui.ui.screens.newrun import Form, NewRunScreen, preflight, problems, wish
from evotui.ui.screens.run import RunScreen
from evotui.ui.widgets.plot import Mark
from tests.golden import START, build
from tests.ui.fakes import CHOICES, FakeLauncher
from tests.ui.test_run_screen import settle

SIZE = (120, 40)


def make(runs: Path, stages: dict[str, str]) -> tuple[EvotuiApp, FakeLauncher]:
    for name, stage in stages.items():
        build(runs, stage, name)
    launcher = FakeLauncher(runs)
    return EvotuiApp(launcher, clock=lambda: START + 7200), launcher


def text_of(app: EvotuiApp) -> str:
    return "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())


def home(app: EvotuiApp) -> HomeScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, HomeScreen)
    return screen


THREE = {"aaa111": "finished", "bbb222": "between", "ccc333": "error"}


async def test_runs_are_listed_with_their_figures(tmp_path: Path) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "3 runs" in text_of(app) and "aaa111" in text_of(app))
        line = next(x for x in text_of(app).splitlines() if "aaa111" in x)
        for words in ("✓ finished", "CartPole-v1", "search", "492.8", "485.0 ± 2.4", "96.9", "56/64", "1 h"):
            assert words in line, words
        assert any(bar in line for bar in "▁█")
        assert "◌ interrupted" in text_of(app) and "✗ failed" in text_of(app)


async def test_the_selected_run_is_shown_beside_where_there_is_room(tmp_path: Path) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot, lambda: "aaa111" in text_of(app) and "last submissions" in text_of(app))
        home(app).runs.choose(next(run.path for run in home(app).runs.rows if run.name == "aaa111"))
        await settle(pilot, lambda: "held-out 485.0 ± 2.4 over 32 cases, final score 96.9" in text_of(app))
        for words in ("56/64 episodes", "selected, validation", "mean return", "submissions", "★ s007"):
            assert words in text_of(app), words
        await settle(pilot, lambda: "random\N{NO-BREAK SPACE}22.1" in text_of(app))  # for scale, once it was read
        assert str(tmp_path)[:40] in text_of(app) and "post-hoc" in text_of(app)  # cut where it is too long
        home(app).runs.choose(next(run.path for run in home(app).runs.rows if run.name == "bbb222"))
        await settle(pilot, lambda: "in-loop proxy" in text_of(app))
        assert "held-out 485" not in text_of(app)
        await pilot.press("slash", *"zzz")
        await settle(pilot, lambda: "no run matches; esc clears the filter" in text_of(app))
        await pilot.press("escape")
        await pilot.resize_terminal(159, 60)  # the list needs it all
        await settle(pilot, lambda: "last submissions" not in text_of(app) and "aaa111" in text_of(app))
    app, _ = make(tmp_path, {})
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "3 runs" in text_of(app))
        assert home(app)._preview is None  # nothing is made of what is not shown


def test_a_preview_needs_nothing_but_the_summary(tmp_path: Path) -> None:
    run = RunSummary(
        tmp_path, "x", "e", "E-v1", "search", status="running", total=1, used=1, submissions=1, means=(None,),
        started_at=100.0, last_at=130.0,
    )  # fmt: skip
    assert [part.text for side in budget_words(run) for part in side][1:] == ["1/1 episode", "1 submission"]
    assert marks_of(run) == [Mark.RUNNING] and marks_of(replace(run, status="error")) == [Mark.FAILED]
    assert marks_of(replace(run, means=(1.0, 1.0, 2.0))) == [Mark.BEST, Mark.FLAT, Mark.BEST]
    assert best_of(replace(run, means=(3.0, None, 3.0))) == 0 and best_of(run) is None
    assert [line.plain for line in standing(run, 160.0)] == ["going on for 01:00", str(tmp_path)]
    told = [line.plain for line in standing(replace(run, status="interrupted", means=(2.0, None)), 4000.0)]
    assert told[:2] == ["best so far 2 of s000, in-loop proxy", "took 00:30 · 1 h ago"]
    assert series_of(replace(run, means=(), problem="line 3 is no fact"), None).empty == "line 3 is no fact"


async def test_small_terminals_show_whole_sentences_of_a_new_run(tmp_path: Path) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("n")
        await settle(pilot, lambda: "the best one is scored." in " ".join(text_of(app).replace("│", " ").split()))
        assert "For scale" not in text_of(app)
        await pilot.resize_terminal(120, 40)
        await settle(pilot, lambda: "For scale: random -500" in text_of(app))


async def test_what_is_looked_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, launcher = make(tmp_path, THREE)
    known = threading.Event()
    monkeypatch.setattr(launcher, "environments", lambda: known.wait(60) and list(CHOICES))
    try:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.press("n")
            await settle(pilot, lambda: "looking for environments …" in text_of(app))
            known.set()
            await settle(pilot, lambda: "For scale" in text_of(app) and "looking for" not in text_of(app))
    finally:
        known.set()


def test_one_is_no_plural(tmp_path: Path) -> None:
    assert [counted(n, "episode") for n in (0, 1, 2)] == ["0 episodes", "1 episode", "2 episodes"]


async def test_an_empty_folder_invites(tmp_path: Path) -> None:
    app, _ = make(tmp_path / "nowhere", {})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "No run yet" in text_of(app))
        assert "press n" in text_of(app) and "evotui demo" in text_of(app)
        await pilot.press("enter")
        assert "n starts one" in home(app).keybar.said


async def test_moving_opening_and_coming_back(tmp_path: Path) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "3 runs" in text_of(app))
        runs = home(app).runs
        names = [run.name for run in runs.rows]
        for key, at in (
            ("j", 1),
            ("down", 2),
            ("j", 2),
            ("k", 1),
            ("g", 0),
            ("G", 2),
            ("home", 0),
            ("ctrl+d", 2),
            ("ctrl+u", 0),
        ):
            await pilot.press(key)
            assert runs.selected is not None and runs.selected.name == names[at], key
        await pilot.press("y")
        assert app.clipboard.endswith(names[0])
        await pilot.press("enter")
        await settle(pilot, lambda: isinstance(app.screen, RunScreen))
        await settle(pilot, lambda: names[0] in text_of(app))
        await pilot.press("q")
        await settle(pilot, lambda: app.screen is home(app))
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_filter_over_no_run_takes_no_letter_for_a_command(tmp_path: Path) -> None:
    app, _ = make(tmp_path / "nowhere", {})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "No run yet" in text_of(app))
        await pilot.press("slash", *"nq")  # a new run, and out
        await settle(pilot, lambda: home(app).words is not None and home(app).words.value == "nq")  # type: ignore[union-attr]
        assert app.screen is home(app) and app.is_running


async def test_filtering(tmp_path: Path) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "3 runs" in text_of(app))
        await pilot.press("slash", *"cart fin")  # letters are text here, never keys
        await settle(pilot, lambda: "1 of 3 runs" in text_of(app))
        await pilot.press("enter")
        assert home(app).runs.has_focus and len(home(app).runs.rows) == 1
        await pilot.press("escape")
        await settle(pilot, lambda: len(home(app).runs.rows) == 3)
        await pilot.press("slash", *"zzz")
        await settle(pilot, lambda: "no run matches" in text_of(app))


async def test_refresh_finds_new_runs(tmp_path: Path) -> None:
    app, _ = make(tmp_path, {"aaa111": "finished"})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "1 run" in text_of(app))
        build(tmp_path, "between", "new999")
        await pilot.press("r")
        await settle(pilot, lambda: "new999" in text_of(app))


async def test_a_run_that_cannot_be_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, launcher = make(tmp_path, {"aaa111": "finished"})

    async def refuse(run: Path) -> None:
        raise RuntimeError("line 3 is damaged")

    monkeypatch.setattr(launcher, "open", refuse)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "1 run" in text_of(app))
        await pilot.press("enter")
        await settle(pilot, lambda: "line 3 is damaged" in home(app).keybar.said)


async def test_a_damaged_run_is_listed_with_its_problem(tmp_path: Path) -> None:
    bad = tmp_path / "search" / "x" / "bad1"
    bad.mkdir(parents=True)
    (bad / "events.jsonl").write_text("[red]no log[/red]\n")
    app, _ = make(tmp_path, {})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "! unreadable" in text_of(app))
        assert "line 1" in text_of(app)


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (80, 24), (200, 60), (39, 11)])
async def test_home_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    app, _ = make(tmp_path, THREE)
    async with app.run_test(size=size) as pilot:
        await settle(pilot, lambda: len(home(app).runs.rows) == 3)
        shown = text_of(app)
        assert ("evotui needs" in shown) == (size[0] < 40)
        if size[0] >= 40:
            assert "aaa111" in shown and "CartPole-v1" in shown


async def test_two_thousand_runs_do_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = summary(build(tmp_path / "seed", "finished", "aaa111").root)
    many = [replace(one, path=tmp_path / f"r{i}", name=f"r{i:04d}", last_at=START + i) for i in range(2000)]
    monkeypatch.setattr("evotui.record.summary.summaries", lambda runs: iter(many))
    app = EvotuiApp(FakeLauncher(tmp_path), clock=lambda: START + 7200)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "2000 runs" in text_of(app))
        await pilot.press("G")
        assert home(app).runs.selected is not None and home(app).runs.selected.name == "r0000"
        await pilot.press("slash", *"r1999")
        await settle(pilot, lambda: "1 of 2000 runs" in text_of(app))


# ── pure ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_fit_every_width() -> None:
    for width in range(38, 240):
        chosen = runlist.columns(width)
        assert sum(c[2] for c in chosen) + 2 * (len(chosen) - 1) <= width
        assert {"env", "run"} <= {c[0] for c in chosen}
    assert len(runlist.columns(118)) == 10


def test_sparks_and_ages() -> None:
    assert runlist.spark([1.0, None, 2.0, 3.0], 10) == "▁·▅█"
    assert runlist.spark([None, None], 10) == "··" and runlist.spark([5.0, 5.0], 10) == "▄▄"
    assert runlist.spark([float(i) for i in range(20)], 3) == "▁▅█"
    assert [runlist.age(s) for s in (-5, 59, 61, 7200, 90000, 4e7)] == ["now", "now", "1 min", "2 h", "1 d", "1 y"]


def test_running_runs_come_first_then_the_newest() -> None:
    def run(name: str, status: str, last: float) -> RunSummary:
        return RunSummary(Path(name), name, env="gym/cartpole", status=status, last_at=last)

    found = [run("old", "completed", 1), run("new", "completed", 9), run("live", "running", 5)]
    assert [r.name for r in runlist.matching(found, "")] == ["live", "new", "old"]
    assert [r.name for r in runlist.matching(found, "CART running")] == ["live"]


# ── new run ──────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD = Form(env="cartpole")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"env": ""}, "env"), ({"budget": "0"}, "budget"), ({"budget": ""}, "budget"), ({"budget": "many"}, "budget"),
        ({"budget": "1e9"}, "budget"), ({"budget": "100001"}, "budget"), ({"seed": ""}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"name": "a/b"}, "name"), ({"name": ".hidden"}, "name"),
    ],
)  # fmt: skip
def test_wrong_fields_are_named(change: dict[str, str], field: str) -> None:
    assert list(problems(replace(GOOD, **change))) == [field]


def test_a_good_form_is_a_wish_and_a_sentence() -> None:
    assert problems(GOOD) == {}
    assert wish(replace(GOOD, name="mine", seed="-3")).seed == -3
    words = preflight(GOOD, CHOICES[0])
    assert "CartPole-v1 with 128 episodes" in words and "random 22.10, reference 500" in words
    assert "public" in preflight(replace(GOOD, pools="paper"), CHOICES[0])
    assert preflight(replace(GOOD, budget="0"), CHOICES[0]) == ""


Opened = Callable[[], bool]


async def test_starting_a_run(tmp_path: Path) -> None:
    app, launcher = make(tmp_path, {})
    launcher.to_start = build(tmp_path / "other", "rolling", "fresh1")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, NewRunScreen) and "with 128 episodes" in text_of(app))
        assert "needs mujoco" in text_of(app)
        assert "Acrobot-v1 with 128" in text_of(app)  # the first by title
        await pilot.press("down")
        await settle(pilot, lambda: "CartPole-v1 with 128" in text_of(app))
        await pilot.press("up")
        await settle(pilot, lambda: "Acrobot-v1 with 128" in text_of(app))
        field = app.screen.query_one("#budget", Input)
        field.focus()
        await pilot.press("ctrl+u", "q")  # a letter in a field quits nothing
        await settle(pilot, lambda: "'q' is not a number of episodes" in text_of(app))
        await pilot.press("ctrl+s")
        assert launcher.wishes == []
        await pilot.press("backspace", "3", "2", "enter")
        await settle(pilot, lambda: isinstance(app.screen, RunScreen))
        assert launcher.wishes[0].env == "acrobot" and launcher.wishes[0].budget == 32
        assert len(app.screen_stack) == 2  # the dialog is gone


async def test_a_run_that_cannot_start_is_told_beside_the_fields(tmp_path: Path) -> None:
    app, launcher = make(tmp_path, {})
    launcher.refuse = "the runs folder cannot be written"
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, NewRunScreen) and "with 128" in text_of(app))
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: "the runs folder cannot be written" in text_of(app))
        await pilot.press("escape")
        await settle(pilot, lambda: app.screen is home(app))


@pytest.mark.parametrize("size", [(40, 20), (80, 24), (120, 40)])
async def test_the_dialog_fits(tmp_path: Path, size: tuple[int, int]) -> None:
    app, _ = make(tmp_path, {})
    async with app.run_test(size=size) as pilot:
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, NewRunScreen) and "CartPole" in text_of(app))
        assert "Start" in text_of(app) and "lifetime" in text_of(app)
        assert app.screen.query_one(OptionList).has_focus


# ── going on with an interrupted run ─────────────────────────────────────────────────────────────────────────────


async def test_an_interrupted_run_is_resumed_after_a_word_about_it(tmp_path: Path) -> None:
    app, launcher = make(tmp_path, {"bbb222": "rolling"})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "◌ interrupted" in text_of(app))
        assert "R resume" in text_of(app)
        await pilot.press("R")
        await settle(pilot, lambda: "Resume bbb222?" in text_of(app))
        words = " ".join(text_of(app).replace("│", " ").split())
        assert "Kept: 4 submissions; 22 of 64 episodes stay spent." in words
        assert "s003 broke off after 3 of 8 episodes: the other 5 run again, already charged." in words
        assert "Then the agent goes on with 42 episodes." in words
        await pilot.press("escape")
        await settle(pilot, lambda: app.screen is home(app))
        assert launcher.resumed == []
        await pilot.press("R")
        await settle(pilot, lambda: "Resume bbb222?" in text_of(app))
        await pilot.press("y")
        await settle(pilot, lambda: isinstance(app.screen, RunScreen))
        assert [run.name for run in launcher.resumed] == ["bbb222"]


async def test_a_run_that_another_process_drives_or_that_ended_is_not_resumed(tmp_path: Path) -> None:
    app, launcher = make(tmp_path, {"aaa111": "finished", "bbb222": "between"})
    lock = Lock(RunDir(next(tmp_path.rglob("bbb222"))))
    try:
        async with app.run_test(size=SIZE) as pilot:
            await settle(pilot, lambda: "● running" in text_of(app) and "2 runs" in text_of(app))
            assert "R resume" not in text_of(app)
            await pilot.press("R")
            assert home(app).keybar.said == "resume: another process is running it: enter watches it"
            await pilot.press("G", "R")
            assert home(app).keybar.said == "resume: only a run that was interrupted can go on"
            assert launcher.resumed == []
    finally:
        lock.release()


async def test_why_a_run_cannot_be_resumed_is_told(tmp_path: Path) -> None:
    app, launcher = make(tmp_path, {"bbb222": "between"})
    launcher.refuse = "another process is running bbb222"
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "◌ interrupted" in text_of(app))
        await pilot.press("R")
        await settle(pilot, lambda: "Resume bbb222?" in text_of(app))
        await pilot.press("y")
        await settle(pilot, lambda: "another process is running bbb222" in home(app).keybar.said)
        assert app.screen is home(app)


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("editing", "the agent goes on with"),
        ("validating", "Validation goes on at the next unfinished case"),
    ],
)
def test_what_goes_on_is_said(tmp_path: Path, stage: str, says: str) -> None:
    assert says in plan(read_state(build(tmp_path, stage).root))
