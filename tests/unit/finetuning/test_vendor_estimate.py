"""What a training at a vendor is expected to be charged for."""

import json
from functools import partial

import pytest

from app.finetuning.charges import TrainingEstimate
from app.finetuning.openai.fields import epochs_of
from app.finetuning.vendors.estimate import count_tokens, estimate

ROW = {"messages": [{"role": "user", "content": "x" * 35}, {"role": "assistant", "content": "y" * 70, "weight": 1}]}
LINE = json.dumps(ROW).encode() + b"\n"


def test_every_token_of_the_rows_counts_in_each_epoch() -> None:
    found = estimate(count_tokens([LINE] * 200), lambda _: 2, 3.0)
    assert found == TrainingEstimate(200 * 2 * (10 + 20 + 2 * 4 + 3), 2, 3.0)
    assert found.cost == pytest.approx(0.0492)
    assert found.words == "about 16400 trained tokens in 2 epochs, $0.0492 at $3.00 a million"
    unpriced = estimate(count_tokens([LINE]), lambda _: 1, None)
    assert (unpriced.cost, unpriced.words) == (None, "about 41 trained tokens in 1 epoch")


def test_few_rows_are_seen_more_often_where_the_vendor_chooses() -> None:
    assert [epochs_of({}, rows) for rows in (1, 10, 33, 34, 8000, 10_000, 50_000)] == [25, 10, 3, 3, 3, 2, 1]
    assert estimate(count_tokens([LINE] * 10), partial(epochs_of, {"n_epochs": "auto"}), None).epochs == 10
    assert epochs_of({"n_epochs": 2}, 10) == 2
