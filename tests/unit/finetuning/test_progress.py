"""How far a job is, and its events in words."""

from types import SimpleNamespace
from typing import Any

from app.finetuning.progress import figures, left, line


def step(number: int, at: float, steps: int = 100) -> dict[str, Any]:
    return {
        "event": "step", "step": number, "steps": steps, "at": at, "epoch": number / 50, "loss": 1.23456,
        "lr": 1e-4, "gradient_norm": 0.5, "tokens_per_second": 800.0,
    }  # fmt: skip


def test_the_time_that_is_left_follows_the_latest_steps() -> None:
    assert left([step(10, 100.0), step(20, 102.0), step(30, 104.0)]) == 14
    assert left([step(100, 100.0), step(20, 110.0), step(30, 112.0)]) == 14  # it was gone on with from step 10
    assert left([]) is None
    assert left([step(1, 100.0)]) is None


def row(**values: Any) -> Any:
    usual = {"id": 3, "step": None, "steps": None, "loss": None, "device": None, "error": None, "registered_step": None}
    usual |= {"remote_status": None, "trained_tokens": None}
    return SimpleNamespace(**usual | values)


def test_a_job_that_has_told_nothing_has_no_figures_yet() -> None:
    told = figures(row(), "waiting", [], None, None)
    assert (told["status"], told["step"], told["percent"]) == ("waiting", 0, 0)
    assert {told[name] for name in ("steps", "loss", "eval_loss", "lr", "left", "saved")} == {None}


def test_figures_are_of_the_last_events() -> None:
    events = [step(10, 100.0), {"event": "saved", "step": 10, "checkpoint": "checkpoint-10"}, step(20, 102.0)]
    held_out = {"event": "eval", "step": 10, "loss": 2.0}
    now = row(step=20, steps=100, loss=1.23456)
    best = {"event": "eval", "step": 5, "loss": 1.5}
    told = figures(now, "running", events, held_out, best)
    assert (told["best_step"], told["best_loss"], told["registered_step"]) == (5, 1.5, None)
    assert (told["percent"], told["loss"], told["eval_loss"], told["eval_step"]) == (20, 1.235, 2.0, 10)
    assert (told["saved"], told["left"], told["tokens_per_second"]) == (10, 16, 800.0)
    assert figures(now, "cancelled", events, None, None)["left"] is None


def test_what_a_vendor_has_trained_has_a_cost_where_its_price_is_known() -> None:
    trained = row(trained_tokens=5000, remote_status="succeeded")
    assert figures(trained, "done", [], None, None)["cost"] is None
    assert figures(trained, "done", [], None, None, cost=0.015)["cost"] == 0.015


def test_events_are_lines_with_their_time() -> None:
    began = {
        "event": "started", "at": 0, "device": "cpu (2 threads)", "rows": 48, "targets": 900, "parameters": 35000,
        "shortened": 3, "resumed_from": "checkpoint-7",
    }  # fmt: skip
    assert line(began) == (
        "00:00:00  started on cpu (2 threads): 48 rows, 3 shortened, 900 tokens to learn, 35000 weights,"
        " goes on from checkpoint-7"
    )
    assert line(began | {"stored_reference_rows": 40, "computed_reference_rows": 8}) == (
        "00:00:00  started on cpu (2 threads): 48 rows, 3 shortened, 900 tokens to learn, 35000 weights,"
        " reference of 40 rows from play and of 8 computed, goes on from checkpoint-7"
    )
    counts = {"shortened": 0, "cut": 2, "skipped": 1}
    assert "48 rows, 2 cut, 1 left out as too long, 900 tokens to learn" in line(began | counts)
    assert line(step(7, 61)) == "00:01:01  step 7 of 100  loss 1.235  lr 0.0001  800 tokens/s"
    assert line({"event": "failed", "at": 1, "message": "the disk is full"}) == "00:00:01  failed: the disk is full"
    ended = {"event": "finished", "at": 1, "step": 14, "steps": 84, "metrics": {"loss": 1.0, "eval_loss": 2.3456}}
    assert line(ended).endswith("finished with the weights of step 14 of 84, whose held-out loss was the best: 2.346")
    assert line({"event": "eval", "at": 1, "step": 7, "steps": 9, "loss": None}).endswith("held-out loss no number")
