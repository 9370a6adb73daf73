"""A society as a folder of files, in the format of the published programs: exported whole, or imported.

external_memory/agent_N.jsonl, a JSON array, has an agent's interactions, internal_memory/agent_N.json what it
remembers. log.txt and sandbox.json have what was said and the rated responses; society.json is ours, and has what the
other files lack: the name, the settings, and the models. Source: Liu et al. 2023, arXiv 2305.16960.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.core.files import file_problem, temporary_beside
from app.datasets.json_list import read_list
from app.datasets.records import read_json
from app.games.base import JSON
from app.jobs.kind import finish
from app.models import Society
from app.society import store
from app.society.comparisons import rated_rows
from app.society.config import BAD, GOOD, LARGEST_SIZE, Label, Setting, SocietyConfig
from app.society.interaction import Interaction
from app.society.job import SOCIETY
from app.society.record_files import (
    label_of,
    log_lines,
    read_internal_memory,
    read_record,
    sandbox_rows,
    write_external_memory,
    write_internal_memory,
)

EXTERNAL, INTERNAL, LOG, SANDBOX, ABOUT = (
    "external_memory", "internal_memory", "log.txt", "sandbox.json", "society.json",
)  # fmt: skip
_AGENT = re.compile(r"agent_(\d{1,4})\.jsonl?")
_RECORDS = "a JSON array of interactions"


def write_folder(session: Session, number: int, folder: Path) -> int:
    """Write a society's files into a new folder. Returns the number of interactions in it.

    Raises NotFound, Conflict if the path already exists, and Invalid if it cannot be written.
    """
    row = SOCIETY.get(session, number)
    agents = store.agents_of(session, number)
    every = list(store.read_interactions(session, number))
    if folder.exists():
        raise Conflict(
            "--out", expected=Phrase("a folder that is not there yet"), got=Verbatim(folder), remedy="name another"
        )
    of_agent: dict[int, list[Interaction]] = {each.agent: [] for each in agents}
    for each in every:
        of_agent[each.agent].append(each)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(folder) as draft:
            for name in (EXTERNAL, INTERNAL):
                (draft / name).mkdir(parents=True)
            for agent in agents:
                label = GOOD if agent.label == GOOD else BAD
                memory = dict(_first_memories(row, label, agent.first_memories))
                for each in of_agent[agent.agent]:
                    memory.setdefault(each.question, each.revision)  # a question keeps its first answer
                _write_text(
                    draft / EXTERNAL / f"agent_{agent.agent}.jsonl",
                    write_external_memory(of_agent[agent.agent], label),
                )
                _write_text(draft / INTERNAL / f"agent_{agent.agent}.json", [write_internal_memory(memory)])
            _write_text(draft / LOG, (f"{line}\n" for each in every for line in log_lines(each)))
            _write_text(draft / SANDBOX, [json.dumps(list(sandbox_rows(rated_rows(every))), indent=2), "\n"])
            _write_text(draft / ABOUT, [json.dumps(_society_json(row), indent=2), "\n"])
    except OSError as error:
        raise Invalid(
            "--out",
            expected=Phrase("a folder that can be written to"),
            got=Verbatim(file_problem(error)),
            subject=folder,
        ) from None
    return len(every)


def read_folder(session: Session, folder: Path, model: str, name: str = "") -> Society:
    """A society built from a folder's external memories; it is over and can neither be run nor resumed.

    `model` is the model of all agents and of the observers where the files do not name one. Raises Invalid, which names
    the file.
    """
    found, labels = _memories(folder, model)
    priors, first = _first_of(folder, found, labels)
    about = _read_about(folder)
    agents = max(labels) + 1
    row = SOCIETY.new_row(
        queued=False,
        name=name or about.get("name") or folder.resolve().name[:80],
        config=_known_config(about, found, labels, agents),
        imported=True,
        agents=[
            {"model_id": None, "model": each, "share": count, "system": False}
            for each, count in sorted(Counter(each.model for each in found).items())
        ],
        observers=[{"model_id": None, "model": each} for each in about.get("observers") or [model]],
        embedder=str(about.get("embedder") or "unknown"),
        question_source=str(folder)[-300:],
        questions=list(dict.fromkeys(each.question for each in found)),
        prior_source=str(folder)[-300:],
        priors={label: [list(pair) for pair in pairs] for label, pairs in priors.items()},
        lease_count=0,
        iteration=max(each.iteration for each in found) + 1,
    )
    session.add(row)
    session.flush()
    models = {each.agent: each.model for each in found}
    store.insert_agents(
        session,
        (
            {"society_id": row.id, "agent": agent, "label": labels[agent], "model": models.get(agent, model),
             "model_id": None, "first_memories": first[agent]}
            for agent in sorted(labels)
        ),
    )  # fmt: skip
    store.insert_interactions(session, row.id, found)
    session.refresh(row)
    finish(row)
    session.flush()
    return row


# ---- Writing ----------------------------------------------------------------------


def _first_memories(row: Society, label: str, places: Sequence[int]) -> Iterator[tuple[str, str]]:
    pairs = row.priors.get(label, [])
    for place in places:
        question, answer = pairs[place]
        yield question, answer


def _write_text(path: Path, pieces: Iterable[str]) -> None:
    with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(pieces)


def _society_json(row: Society) -> JSON:
    return {
        "name": row.name,
        "config": row.config,
        "agents": [each["model"] for each in row.agents],
        "observers": [each["model"] for each in row.observers],
        "embedder": row.embedder,
    }


# ---- Reading ----------------------------------------------------------------------


def _memories(folder: Path, model: str) -> tuple[list[Interaction], dict[int, Label]]:
    """All interactions by iteration and agent, and the label of each agent."""
    files = sorted((folder / EXTERNAL).glob("agent_*.json*"))
    if not files:
        raise Invalid(
            None,
            expected=Phrase("%(files)s with an agent's interactions each", files=f"{EXTERNAL}/agent_N.jsonl"),
            got=Phrase("none"),
            subject=folder,
        )
    found: dict[tuple[int, int], Interaction] = {}
    labels: dict[int, Label] = {}
    for path in files:
        named = _AGENT.fullmatch(path.name)
        if named is None:
            raise Invalid(None, expected="agent_N.jsonl", got=Verbatim(path.name), subject=folder)
        for number, raw in enumerate(read_list(path, _RECORDS, "record"), 1):
            where = f"{path}, record {number}"
            each = read_record(raw, model, where)
            if each.agent != int(named[1]):
                wanted = f"{named[1]}, as the file's name has it"
                raise Invalid(None, expected=wanted, got=each.agent, subject=f"{where}, agent_id")
            if (each.iteration, each.agent) in found:
                got = Verbatim(f"{each.iteration} twice")
                raise Invalid(None, expected="each iteration once", got=got, subject=f"{where}, iteration")
            found[each.iteration, each.agent] = each
            labels[each.agent] = label_of(raw, where)
    if not found:
        raise Invalid(None, expected=Phrase("an interaction"), got=Phrase("none"), subject=folder)
    if max(labels) >= LARGEST_SIZE**2:
        raise Invalid(None, expected=f"agents with numbers below {LARGEST_SIZE**2}", got=max(labels), subject=folder)
    return [each for _, each in sorted(found.items())], labels


def _first_of(
    folder: Path, found: Sequence[Interaction], labels: Mapping[int, Label]
) -> tuple[dict[Label, list[tuple[str, str]]], dict[int, list[int]]]:
    """The first memories of agents, by label, and which of them each agent had.

    They are the entries of an internal memory other than the answers of the agent's own interactions; without an
    internal memory there are none.
    """
    learnt: dict[int, dict[str, str]] = {agent: {} for agent in labels}
    for each in found:
        learnt[each.agent].setdefault(each.question, each.revision)
    places: dict[Label, dict[tuple[str, str], int]] = {GOOD: {}, BAD: {}}
    first: dict[int, list[int]] = {agent: [] for agent in labels}
    for agent in sorted(labels):
        path = folder / INTERNAL / f"agent_{agent}.json"
        if path.exists():
            memory = read_internal_memory(read_json(path, "what an agent remembers"), str(path))
            known = places[labels[agent]]
            pairs = [pair for pair in memory.items() if learnt[agent].get(pair[0]) != pair[1]]
            first[agent] = [known.setdefault(pair, len(known)) for pair in pairs]
    return {label: list(known) for label, known in places.items()}, first


def _read_about(folder: Path) -> Mapping[str, Any]:
    path = folder / ABOUT
    if not path.exists():
        return {}
    about = read_json(path, "what a society was begun with")
    if not isinstance(about, dict):
        raise Invalid(None, expected="an object", got=about, subject=path)
    return about


def _known_config(
    about: Mapping[str, Any], found: Sequence[Interaction], labels: Mapping[int, Label], agents: int
) -> JSON:
    """The settings in the folder, or those inferred from its files; unknown ones are omitted."""
    if "config" in about:
        try:
            return _only(SocietyConfig.read(about["config"], "config"), about["config"])
        except Invalid as error:
            raise error.at(ABOUT) from None
    size = max(2, next(size for size in range(1, LARGEST_SIZE + 1) if size**2 >= agents))
    told = set(labels.values())
    setting: Setting = "all_good" if told == {GOOD} else "all_bad" if told == {BAD} else "mixed_half_half"
    critics = max(1, *(len(each.feedback) for each in found))
    seen = {
        "size": size,
        "iterations": max(each.iteration for each in found) + 1,
        "setting": setting,
        "critics": min(critics, size**2 - 1),
    }
    return _only(SocietyConfig.read(seen), seen)


def _only(config: SocietyConfig, names: Collection[str]) -> JSON:
    return {name: value for name, value in config.model_dump(mode="json").items() if name in names}
