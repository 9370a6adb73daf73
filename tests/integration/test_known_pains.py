"""What hurt people in neighbouring systems, as far as it concerns one person and a model.

`KNOWN` is the index, with `TRIAL` for what stood in the way here: each pain in plain words, and the tests that it is
none any more. Most stand with what they are about; those that stood nowhere are below.
"""

import ast
import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.models import Enrolment
from app.registry import PERSON
from app.studies import answers, consents
from app.studies.progress import find_progress_by_token
from tests.enrolments import finish, load_example, open_wave, play
from tests.experimenter import signed_in
from tests.integration.test_study_export import export, person
from tests.many_people import FIRST_NUMBER, copy_people
from tests.study_pages import AT_ONCE, Walker, door_of, text_of
from tests.waves import changed, loaded_study, new_wave, store_study

ROOT = Path(__file__).parent.parent.parent
HERE = "integration/test_known_pains.py"

KNOWN: Mapping[str, Sequence[str]] = {
    "a crash wipes a running experiment": (
        "integration/test_kill.py::test_a_match_of_each_game_outlives_any_process",
        "integration/test_chaos.py::test_fifty_matches_outlive_what_is_killed_at_random",
        "browser/test_resilience.py::test_a_message_that_is_sent_while_the_server_dies_is_played_once",
        "browser/test_study.py::test_what_was_typed_survives_a_refusal_a_lost_connection_and_a_restart",
    ),
    "an export is silently cut off or misaligned": (
        f"{HERE}::test_an_export_of_more_than_150_people_is_neither_cut_off_nor_misaligned",
        "integration/test_study_export.py::test_the_codebook_has_each_column_and_the_sums_each_file",
    ),
    "who comes back is somebody new": (
        "integration/test_study_entry.py::test_who_comes_back_is_the_same_person",
        "integration/test_study_entry.py::test_two_tabs_at_once_are_one_person",
        "integration/test_study_pages.py::test_who_comes_back_through_the_door_is_where_they_were",
        "browser/test_study.py::test_the_whole_way_is_accessible_in_each_look_and_every_page_is_found_again",
    ),
    "two timers race and a game ends early": (
        "integration/test_clocks.py::test_moves_and_the_clock_at_the_same_moment_end_it_once",
        "integration/test_clocks.py::test_a_move_in_the_last_moment_counts",
        "integration/test_clocks.py::test_upkeep_ends_leases_of_a_clock_that_has_jumped",
    ),
    "who comes too late sees a blank page": (
        "integration/test_study_pages.py::test_who_comes_to_a_full_wave_is_told_and_not_paid",
        "integration/test_study_entry.py::test_of_ten_who_arrive_for_the_last_place_one_gets_it",
        "integration/test_study_pages.py::test_a_closed_wave_says_so_and_who_is_in_goes_on",
    ),
    "nobody sees that somebody has gone": (
        "integration/test_idle.py::test_who_is_silent_for_long_ends_is_settled_and_frees_the_place",
        "integration/test_study_matches.py::test_who_lets_the_clock_of_a_turn_run_out_is_asked_whether_they_are_there",
        "browser/test_resilience.py::test_a_message_written_without_a_line_is_sent_once_when_it_is_back",
    ),
    "a page loads for ever": (
        "browser/test_resilience.py::test_a_page_whose_script_does_not_come_says_so_and_tries_again",
        "browser/test_resilience.py::test_a_model_that_fails_ends_the_match_kindly",
        "integration/test_turns.py::test_a_model_that_takes_too_long_ends_the_match_kindly",
        "integration/test_turns.py::test_a_turn_that_kills_its_workers_is_given_up",
    ),
    "it is submitted here and not at the recruiter": (
        f"{HERE}::test_the_code_is_shown_only_once_everything_is_saved",
        "integration/test_study_pages.py::test_who_has_no_code_for_prolific_is_told_what_to_do_there",
        "integration/test_payments.py::test_a_batch_goes_forward_only_and_its_file_stays_the_same",
    ),
    "a submission that was returned keeps its place": (
        "integration/test_study_entry.py::test_a_visit_that_is_returned_gives_its_place_to_another_person",
        "integration/test_study_entry.py::test_who_came_again_goes_by_the_latest_visit",
        "integration/test_study_assignment.py::test_whoever_takes_a_slot_over_plays_the_same",
    ),
    "every click is saved, and nobody can say which answer was the final one": (
        f"{HERE}::test_of_all_that_was_sent_for_a_page_the_export_has_the_final_answer",
    ),
    "the model greets again after a reconnect": (
        "browser/test_resilience.py::test_a_link_with_a_ticket_opens_the_same_match_again",
        "integration/test_turns.py::test_a_second_ring_finds_nothing_to_do",
        "integration/test_turns.py::test_of_many_rings_at_once_one_plays",
    ),
    "the model answers too fast to be read": (
        "integration/test_study_matches.py::test_a_scripted_partner_takes_as_long_as_the_design_says",
        "browser/test_resilience.py::test_the_partner_is_seen_typing_where_answers_take_their_time",
    ),
    "the model shows what it is called inside": (
        "integration/test_study_matches.py::test_a_hidden_partner_is_hidden_in_all_that_a_page_gets",
        "integration/test_study_pages.py::test_nothing_of_the_study_is_in_the_source_of_its_pages",
    ),
    "logs can be read without signing in": (
        "integration/test_authorisation.py::test_every_route_has_a_line_here_and_every_line_a_route",
        "integration/test_authorisation.py::test_a_visitor_gets_what_the_table_says_and_nothing_private",
    ),
    "a reply that could not be read becomes a move by a part of its text": (
        "unit/games/test_negotiation.py::test_a_bad_move_is_refused_with_its_reason",
        "integration/test_turns.py::test_five_bad_moves_end_the_match_as_the_models_fault",
    ),
    "one seed for the whole server": (f"{HERE}::test_nothing_of_the_app_draws_from_the_global_generator",),
}


# What stood in the way when people were invited to a trial of an earlier Parlor, and the tests that it does no longer.
TRIAL: Mapping[str, Sequence[str]] = {
    "who holds which values cannot be fixed": (
        "integration/test_study_matches.py::test_a_match_is_what_the_plan_and_the_design_say",
        "unit/studies/test_stimuli.py::test_sides_and_starts_are_balanced_over_a_persons_matches_and_over_persons",
    ),
    "clocks, contexts and reading speed are settings of the server": (
        "integration/test_study_matches.py::test_a_match_is_what_the_plan_and_the_design_say",
        "integration/test_study_matches.py::test_a_scripted_partner_takes_as_long_as_the_design_says",
    ),
    "a switch or a label of a model changes every study": (
        "integration/test_study_matches.py::test_what_happens_to_a_model_in_the_registry_does_not_stop_a_match",
    ),
    "a browser forgets all but its last seats": (
        f"{HERE}::test_a_browser_that_has_forgotten_a_seat_comes_back_by_the_private_link",
    ),
    "closing the house to guests closes it to the invited": (
        f"{HERE}::test_a_study_is_played_where_guests_are_not_let_in",
    ),
    "the result and what is told of the data are the same for every study": (
        "integration/test_study_matches.py::test_the_result_shows_the_points_that_the_design_tells",
        "integration/test_study_leaving.py::test_every_page_leads_to_withdrawal_and_to_report_and_leave",
    ),
    "exports and the overview mix guests with participants": (
        f"{HERE}::test_exports_and_the_overview_tell_participants_from_guests",
        "integration/test_study_export.py::test_every_table_agrees_with_what_happened",
    ),
    "the times of moves include the artificial delay": (
        "integration/test_study_matches.py::test_a_reply_that_is_late_says_by_how_much",
        "browser/test_study_match.py::test_how_a_move_was_written_is_measured_and_the_partner_stays_hidden",
    ),
    "the recruiter's id in the link is ignored": (
        "integration/test_study_entry.py::test_who_comes_back_is_the_same_person",
        "integration/test_study_pages.py::test_a_link_without_the_recruiters_parameters_lets_nobody_in",
    ),
}


@pytest.mark.parametrize("tests", [*KNOWN.values(), *TRIAL.values()], ids=[*KNOWN, *TRIAL])
def test_every_pain_has_tests_that_exist(tests: Sequence[str]) -> None:
    for node in tests:
        file, name = node.split("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in [each.name for each in tree.body if isinstance(each, ast.FunctionDef)], node


def test_nothing_of_the_app_draws_from_the_global_generator() -> None:
    """Each match and each wave draws from a generator of its own, so that none changes what another one gets."""
    wrong = re.compile(r"(?<![\w.])random\.(?!Random\b|SystemRandom\b)[a-z]\w*|from random import (?!Random\b)\w+")
    files = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    found = [f"{path}: {each[0]}" for path in files for each in wrong.finditer(path.read_text(encoding="utf-8"))]
    assert found == []


def test_an_export_of_more_than_150_people_is_neither_cut_off_nor_misaligned(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    with writing(engine) as session:
        progress = person(session, open_wave(session, load_example(session, tmp_path)).id, "Q")
        play(session, progress, 0)
        finish(session, progress)
        copy_people(session, [progress.enrolment.id], 160)
    archive = export(engine, tmp_path)
    everybody = {"Q", *(f"Q{FIRST_NUMBER + number}" for number in range(160))}
    for table in ("analysis", "participants", "enrolments", "answers"):
        assert {row["participant"] for row in archive.rows(table)} == everybody, table
        assert len(archive.rows(table)) == len(everybody), table
    assert len(archive.rows("matches")) == len(everybody)
    for name, content in archive.files.items():
        if name.endswith(".csv"):
            assert len({len(row) for row in csv_rows(content)}) == 1, name
    assert {row["ending"] for row in archive.rows("analysis")} == {"completed"}


def csv_rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_the_code_is_shown_only_once_everything_is_saved(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing() as session:
        store_study(session, loaded_study())
        new_wave(session)
    ann = Walker(app.test_client(), door_of("ann"))
    with writing() as session:
        progress = find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True)
        progress.enrolment.step = next(at for at, step in enumerate(progress.steps) if step.kind == "debrief")
    ann.look()

    def fails(*_: object, **__: object) -> None:
        raise OperationalError("INSERT", {}, OSError("the disk is full"))

    with monkeypatch.context() as broken:
        broken.setattr(consents, "give", fails)
        refused = ann.client.post(ann.address, data={"step": "debrief", "data": "yes", "training": "no"})
    assert refused.status_code >= 500
    assert "C7RX94LM" not in refused.text + ann.look()
    with reading() as session:
        assert session.scalars(select(Enrolment.ending)).one() is None
    assert ann.step == "debrief"
    ann.send(data="yes", training="no")
    assert "C7RX94LM" in text_of(ann.page)


def test_of_all_that_was_sent_for_a_page_the_export_has_the_final_answer(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    asked = [
        {"id": "words", "text": 20, "ask": "What do you expect?"},
        {"id": "age", "number": [18, 110], "ask": "How old are you?"},
    ]
    with writing() as session:
        store_study(session, changed(loaded_study(), survey={"start": asked}))
        new_wave(session)
    ann = Walker(app.test_client(), door_of("ann"))
    ann.send(part="yes")
    ann.send(words="a first thought", age="7")  # is refused: nobody of seven may take part
    ann.send("survey start", words="the final one", age="30")
    assert ann.step == "instructions 1"
    ann.send("survey start", words="by the back button", age="31")  # a page that the browser had kept
    archive = export(engine, tmp_path)
    (row,) = archive.rows("answers")
    assert (row["words"], row["age"]) == ("the final one", "30")
    assert [each["question"] for each in archive.rows("surveys")].count("words") == 1
    assert not re.search(rb"first thought|back button", b"".join(archive.files.values()))


def at_match(app: Flask) -> tuple[Walker, str]:
    """Somebody in the first match of a study, and its address."""
    with writing() as session:
        store_study(session, changed(loaded_study(), same_for_all=AT_ONCE))
        new_wave(session)
    ann = Walker(app.test_client(), door_of("ann"))
    with writing() as session:
        progress = find_progress_by_token(session, ann.address.rpartition("/")[2], lock=True)
        progress.enrolment.step = next(at for at, step in enumerate(progress.steps) if step.key == "match 1")
        answers.draw_arm(session, progress)
    ann.look()
    return ann, ann.send().location or ""


def test_a_browser_that_has_forgotten_a_seat_comes_back_by_the_private_link(app: Flask) -> None:
    ann, match = at_match(app)
    with ann.client.session_transaction() as cookie:
        cookie["seats"] = {f"other-{number}": 0 for number in range(20)}  # all that a cookie has room for
    assert "Open your private link in this browser." in text_of(ann.client.get(match))
    assert ann.client.get(ann.address).location == match
    assert ann.client.get(match).status_code == 200


def test_a_study_is_played_where_guests_are_not_let_in(make_app: Callable[..., Flask]) -> None:
    app = make_app(GUEST_PLAY=False)
    with app.app_context():
        ann, match = at_match(app)
        assert ann.client.get(match).status_code == 200
        refused = ann.client.post("/api/matches", json={"game": "taboo"})
        assert refused.status_code == 403
        assert "by invitation" in refused.json["error"]["message"]  # type: ignore[index]


def test_exports_and_the_overview_tell_participants_from_guests(app: Flask, engine: Engine) -> None:
    _, match = at_match(app)
    with writing(engine) as session:
        guest = live.create(
            session, "taboo", {}, (StoredSeat(PERSON), StoredSeat(PERSON)), seed=1, source="live", instant=True
        )
    admin = signed_in(app)
    rows = list(csv.DictReader(io.StringIO(admin.get("/admin/export/matches.csv").text, newline="")))
    assert {row["match_id"]: row["study_id"] for row in rows} == {match.rpartition("/")[2]: "two-models", guest.id: ""}
    for page, times in (("/admin/", 2), ("/admin/matches", 1)):
        assert text_of(admin.get(page)).count("live study two-models") == times
