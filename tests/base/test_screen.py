"""What a screen shows has no secret, wherever it is shown."""

import io

from rich.console import Console

from tsuishi.base.screen import Screen


def test_no_line_cell_or_note_shows_a_secret() -> None:
    secret = "https://ada:hunter2@host/t.csv?sig=hunter2"
    screen = Screen(Console(file=io.StringIO(), width=200))
    screen.say(f"from {secret}")
    screen.table(secret, (secret,), [(secret,)])
    with screen.working("fetching", ["a"]) as lines:
        lines["a"].say(secret)
    assert isinstance(screen.console.file, io.StringIO)
    said = screen.console.file.getvalue()
    assert said.count("https://host/t.csv?sig=[redacted]") == 5
    assert "hunter2" not in said
