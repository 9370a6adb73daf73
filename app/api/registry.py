"""Models and datasets: lists, and each one in full; and the list of removals."""

from collections.abc import Mapping
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from app.accounts.tokens import READ
from app.api.lists import list_page, list_query, list_schema
from app.api.operations import json_answer, operation
from app.cleanup.listing import REMOVALS
from app.core.extensions import db
from app.datasets import listing as datasets
from app.datasets import store
from app.datasets.description import dataset_json
from app.games.base import JSON
from app.lineage import models_of
from app.matches import model_list
from app.models import Dataset, LanguageModel
from app.registry import get_model_by_number
from app.registry.description import described
from app.web.seats import settings
from app.web.threads import in_worker_thread

_NAME = {"name": {"type": "string", "description": "Only those of this name."}}


@operation(
    "GET",
    "/models",
    scope=READ,
    query={**list_query(model_list.LIST), **_NAME},
    answer=list_schema(model_list.LIST),
)
def list_models(query: Mapping[str, Any]) -> Response:
    """The language models of the registry, in the order of their registration."""
    return _of_name(model_list.LIST, LanguageModel.name, query)


@operation(
    "GET",
    "/models/<int:number>",
    scope=READ,
    answer={"type": "object", "required": ["name", "kind", "games", "options"]},
)
def show_model(number: int) -> Response:
    """One language model: what it is, how it is prompted, and what its test call found."""
    home = settings().home

    def read(session: Session) -> JSON:
        row = get_model_by_number(session, number)
        withdrawn = [each.id for each in models_of(session).get(row.id, ())]
        return {"model_id": row.id, **described(row, home), "learned_withdrawn": withdrawn}

    return json_answer(in_worker_thread(db.engine, read))


@operation(
    "GET",
    "/datasets",
    scope=READ,
    query={**list_query(datasets.LIST), **_NAME},
    answer=list_schema(datasets.LIST),
)
def list_datasets(query: Mapping[str, Any]) -> Response:
    """The datasets, the latest first"""
    return _of_name(datasets.LIST, Dataset.name, query)


@operation(
    "GET",
    "/datasets/<int:number>",
    scope=READ,
    answer={"type": "object", "required": ["dataset_id", "name", "version", "rows", "spec", "figures"]},
)
def show_dataset(number: int) -> Response:
    """One dataset: its source and its contents."""
    home = settings().home
    return json_answer(
        in_worker_thread(db.engine, lambda session: dataset_json(store.get_dataset(session, number), home))
    )


@operation("GET", "/removals", scope=READ, query=list_query(REMOVALS), answer=list_schema(REMOVALS))
def list_removals(query: Mapping[str, Any]) -> Response:
    """What was removed to free disk space, latest first, and whether it can be restored."""
    found: Response = list_page(REMOVALS, query)
    return found


def _of_name(listing: Any, column: Any, query: Mapping[str, Any]) -> Response:
    found: Response = list_page(listing, query, [column == query["name"]] if "name" in query else [])
    return found
