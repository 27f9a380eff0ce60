"""The bar on a terminal: most tests run without one."""

import io

from rich.console import Console

from engine.cli import options as progress


def test_a_terminal_gets_a_bar_before_and_after_the_total_is_known(monkeypatch):
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda **options: terminal)
    with progress.progress_bar() as bar:
        assert not bar.disable
        task = bar.add_task("DC-PnPDP", total=None, note="")
        bar.refresh()
        bar.update(task, total=4, completed=3, note="[/odd].npy")
        bar.refresh()
    assert "0/?" in text.getvalue()
    assert "3/4" in text.getvalue()
    assert "[/odd].npy" in text.getvalue()
