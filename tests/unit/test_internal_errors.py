"""What people read of an error that nobody has foreseen."""

import pytest

from app.core.internal_errors import internal_error, unexplained


def test_the_reason_is_a_reference_that_the_log_has_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    line = internal_error("a worker broke", KeyError("created_at"), job=7)
    reference = line.removeprefix("internal error ").partition(":")[0]
    assert "KeyError" not in line
    logged = capsys.readouterr().out
    assert reference in logged
    assert "KeyError: 'created_at'" in logged


ELSEWHERE = "internal error: the training ended with exit code 3; its log says where"


def test_what_the_system_says_is_said() -> None:
    assert ": Too many open files; " in internal_error("a player broke", OSError(24, "Too many open files"))


@pytest.mark.parametrize(
    ("last_line", "reason"),
    [
        ("", "the training ended with exit code 3 and said nothing"),
        ("the disk is full", "the disk is full"),
        ("TypeError: '<' not supported", ELSEWHERE),
        (
            "json.decoder.JSONDecodeError: line 1",
            "internal error: the training ended with exit code 3; its log says where",
        ),
        ("SystemExit", ELSEWHERE),
        ("Error: no such device", "Error: no such device"),
    ],
)
def test_a_process_is_quoted_unless_it_ended_by_an_error_of_python(last_line: str, reason: str) -> None:
    assert unexplained("the training", 3, last_line) == reason
