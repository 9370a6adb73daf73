"""The options of a training job: its method, and the fields of `python -m training` that it may set. Pure.

The methods in `training/methods/` describe their fields. Names and numbers are checked here, where no training code is
loaded; the training itself reports errors that depend on the data or the base.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim, either
from app.core.validation import choice_of, read_value
from app.games.base import JSON
from training.methods import all_methods, methods_here
from training.methods.base import (
    COMPARISONS,
    CONVERSATIONS,
    SUPERVISED_DATA,
    FieldFault,
    Method,
    Need,
    with_new_names,
)

LOCAL = "local"
REFERENCE = "reference"  # in a job's config: the name of the reference model, if it is not the base
SFT_DATA = SUPERVISED_DATA  # in a job's config: the number of the dataset of supervised rows, if any
Fields = Mapping[str, Mapping[str, Any]]  # the JSON Schema of each field that a job may be given, by name
JOB_DEFAULTS: Mapping[str, Any] = {"log_every": "auto"}  # where a job's defaults differ from its method's
_KINDS = {CONVERSATIONS: Phrase("conversations"), COMPARISONS: Phrase("comparisons")}
_REMEDIES = {"reward": Phrase("build one with `flask dataset build --rewards spag`")}  # by what moves need
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def find_method(name: str) -> Method:
    """The method with this name. Raises Invalid."""
    methods = all_methods()
    if name not in methods:
        raise Invalid("method", expected=either(methods), got=name)
    return methods[name]


def preset_fields(method: str, preset: Any) -> Mapping[str, Any]:
    """The fields in a method's preset with this name; empty without a name. Raises Invalid."""
    if preset is None:
        return {}
    known = find_method(method).presets
    if not known:
        expected = Phrase("none with %(method)s, which has none", method=method)
        raise Invalid("preset", expected=expected, got=preset)
    return choice_of(known, preset, "preset")


def read_config(method: str, raw: Mapping[str, Any]) -> JSON:
    """The given fields, checked; numbers may be given as text, and null stands for the default. Raises Invalid."""
    known = find_method(method)
    if not known.loss:
        raise Invalid(
            "method",
            expected=Phrase("%(methods)s, which are trained with here", methods=either(methods_here())),
            got=method,
            remedy=Phrase("train at a vendor that has it"),
        )
    fields = known.job_fields
    try:
        given = with_new_names(raw)
    except FieldFault as twice:
        raise _invalid(twice) from None
    found = read_fields(fields, given, method)
    for name in found:
        others = [other for other in fields[name].get("needs", ()) if other in fields]
        if others and found[name] and not any(found.get(other) for other in others):
            raise Invalid(name, expected=Phrase("%(fields)s beside it", fields=either(others)), got=Phrase("none"))
    refuse_fault(known.fault(found))
    return found


def read_fields(fields: Fields, given: Mapping[str, Any], of: str) -> JSON:
    """The given values of `fields`, which belong to the method or backend `of`; null is left out. Raises Invalid."""
    if unknown := sorted(set(given) - set(fields)):
        raise Invalid(
            unknown[0],
            expected=Phrase("a field of %(method)s (%(names)s)", method=of, names=", ".join(fields)),
            got=Phrase("something else"),
        )
    return {name: read_value(fields[name], value, name) for name, value in given.items() if value is not None}


def refuse_fault(fault: FieldFault | None) -> None:
    """Raises Invalid if fields have a fault."""
    if fault is not None:
        raise _invalid(fault)


def _invalid(fault: FieldFault) -> Invalid:
    """The error for a fault found by a method's own check."""
    return Invalid(fault.field, expected=fault.expected, got=Verbatim(fault.got), remedy=fault.remedy)


def check_rows(method: str, kind: str, first: Mapping[str, Any] | None, dataset: str) -> None:
    """Raises Invalid if the method cannot be trained on a dataset of this kind, with this first row.

    `first` is None if it was not read; `dataset` is the dataset's name in the error.
    """
    rows = find_method(method).rows
    if kind != rows.kind:
        raise Invalid(
            "dataset",
            expected=Phrase("a dataset of %(kind)s, as %(method)s needs", kind=_KINDS[rows.kind], method=method),
            got=Phrase("%(name)s, which holds %(kind)s", name=dataset, kind=_KINDS[kind]),
        )
    if first is not None and (key := rows.missing(first)) is not None:
        raise Invalid(
            "dataset",
            expected=Phrase("moves with a %(key)s each, which %(method)s needs", key=key, method=method),
            got=Phrase("%(name)s, whose first row has a move without it", name=dataset),
            remedy=_REMEDIES.get(key),
        )


def check_base(method: str, name: str | None, bases: Phrase) -> None:
    """Raises Invalid if a base is given for a method that starts from scratch, or none for another method.

    `bases` is the kind of model that the backend starts from.
    """
    if find_method(method).goes_on_from_base:
        if not name:
            expected = Phrase("the %(kind)s that %(method)s starts from", kind=bases, method=method)
            raise Invalid("base", expected=expected, got=Phrase("none"))
    elif name:
        expected = Phrase("none with %(method)s, which starts from scratch", method=method)
        raise Invalid("base", expected=expected, got=name)


def check_reference(method: str, name: str | None) -> None:
    """Raises Invalid if a reference model is given for a method that does not use one."""
    if name is not None and Need.REFERENCE_MODEL not in find_method(method).needs:
        raise Invalid(
            "reference",
            expected=Phrase("none with %(method)s, which compares with no reference model", method=method),
            got=name,
        )


def check_supervised(method: str, name: str | None, kind: str = CONVERSATIONS) -> None:
    """Raises Invalid if a dataset with this name and kind cannot be mixed into a method's rows; None is always
    allowed.
    """
    if name is None:
        return
    if not find_method(method).mixes_supervised_rows:
        mixing = [each.name for each in all_methods().values() if each.mixes_supervised_rows]
        raise Invalid(
            SFT_DATA,
            expected=Phrase("none with %(method)s, which mixes no supervised rows in", method=method),
            got=name,
            remedy=Phrase("train with %(methods)s", methods=either(mixing)),
        )
    if kind != CONVERSATIONS:
        raise Invalid(
            SFT_DATA,
            expected=Phrase("a dataset of %(kind)s", kind=_KINDS[CONVERSATIONS]),
            got=Phrase("%(name)s, which holds %(kind)s", name=name, kind=_KINDS[kind]),
        )


def check_policies(policies: Collection[str], sha256: str, dataset: str, reference: str) -> None:
    """Raises Invalid if checkpoints with these hashes have played rows of a dataset, and the reference is another one.

    `sha256` is the hash of the reference, `dataset` and `reference` are the names in the error.
    """
    if others := sorted(set(policies) - {sha256}):
        raise Invalid(
            "reference",
            expected=Phrase("the model that played %(dataset)s, %(policy)s…", dataset=dataset, policy=others[0][:12]),
            got=Phrase("%(name)s, %(policy)s…", name=reference, policy=sha256[:12]),
            remedy=Phrase("name that model as reference, or build a dataset of what the reference played"),
        )


def check_model_name(name: str) -> None:
    """Raises Invalid for a name that is not valid for a model and the folder with its checkpoint."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            "name",
            expected=Phrase("1 to 80 letters, digits, dots, dashes and underscores, with a letter or digit first"),
            got=name,
        )
