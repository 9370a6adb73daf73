"""The benchmarks of rounds and societies find in the database what they played."""

from bench import selfplay_api, selfplay_scripted, society
from bench.stub import running


def test_a_scripted_round_is_found_whole_and_its_memory_looked_at() -> None:
    found = selfplay_scripted.committed("negotiation", 12)
    assert found["whole"]
    assert list(found["rss_mib"]) == [12]


def test_a_round_of_an_api_model_is_found_with_every_move_and_call() -> None:
    with running(latency=0.01) as url:
        found = selfplay_api.parlor(url, in_flight=4, matches=8, profile=False)
    assert (found["deals"], found["moves"], found["calls"]) == (8, 64, 64)


def test_a_society_of_an_api_model_is_found_with_every_interaction_and_call() -> None:
    with running(0.01, "rater") as url:
        found = society.measured(society.MODEL, society.MODEL, 3, 1, url=url, in_flight=8)
    assert (found["whole"], found["interactions"], found["calls"]) == (True, 9, 90)
