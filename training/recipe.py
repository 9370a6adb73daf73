"""What all methods share: rows, a resumable run, and a checkpoint that appears only when complete."""

import os
import random
import shutil
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils.tensorboard import SummaryWriter
from transformers import AutoModelForCausalLM, EarlyStoppingCallback, TrainerCallback
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from transformers.integrations.integration_utils import TensorBoardCallback, WandbCallback
from transformers.utils.logging import disable_progress_bar

from training import checkpoints, mlflow_run
from training.callbacks import ProgressCallback
from training.data import Rows
from training.devices import (
    check_devices,
    failing_together,
    join_processes,
    remove_notes,
    uses_gpu,
    wait_for_all,
)
from training.errors import TrainingRefused
from training.hashes import checkpoint_hash, file_hash
from training.marks import FIRST_RENDERER
from training.methods.base import Config, FromCheckpoint, Method, with_new_names
from training.mlflow_run import MlflowRun
from training.processes import LAUNCHED_WITH, process_number, processes
from training.processor import slow_precision
from training.progress import Progress, StopRequest
from training.rendering import CUT, SHORTENED, SKIPPED, TOO_LONG, Renderer
from training.rows import load_rows
from training.span_trainer import SpanTrainer
from training.trainer import PREFIX, TokenTrainer, checkpoints_in, is_over, renderer_version

# They change no weight; the base's hash is recorded as it was found.
_NOT_RECORDED = {
    "output", "run", "resume", "keep", "log_every", "threads", "device", "base_sha256", "reference_cache",
    "reference_sha256", "gradient_checkpointing",
}  # fmt: skip
_NO_SETTINGS = {
    "data", "eval_data", "sft_data", "chat_template", "template_arguments", "base", "base_sha256", "output", "run",
    "resume", "reference", "reference_sha256", "reference_cache",
}  # fmt: skip

_CAME_LATER = {
    "gradient_checkpointing",
    "packing",
    "lora_rank",
    "lora_alpha",
    "lora_dropout",
    "lora_targets",
    "keep_adapters",
    "sft_data",
    "too_long",
    "template_arguments",
}  # added after 0.1


def prepare(config: Config) -> None:
    """Set up seeds, threads and determinism before a model is made. Raises Refused where the output cannot be
    written.
    """
    if config.output.exists():
        raise TrainingRefused(
            f"output: expected a folder that is not there yet, got {config.output}; remove it or name another"
        )
    for folder in (config.output.parent, config.run_folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrainingRefused(
                f"output: expected a folder that can be written, got {folder}: {error.strerror}"
            ) from None
    check_devices(config)
    if process_number() == 0:
        remove_notes(config.run_folder)
    join_processes(config)
    if config.threads:
        torch.set_num_threads(config.threads)
    disable_progress_bar()
    random.seed(config.seed)
    numpy.random.seed(config.seed)
    torch.manual_seed(config.seed)
    if not uses_gpu(config):
        torch.use_deterministic_algorithms(True)


def renderer(config: Config, model: Any, tokenizer: Any) -> Renderer:
    """The renderer of rows as tokens for this model. Raises Refused if the given chat template cannot be read."""
    if config.chat_template is not None:
        try:
            tokenizer.chat_template = config.chat_template.read_text(encoding="utf-8")
        except OSError as error:
            raise TrainingRefused(
                f"chat_template: expected a file, got {config.chat_template}: {error.strerror}"
            ) from None
    version, length = renderer_version(config), checkpoints.length_of(model)
    return Renderer(
        tokenizer,
        length,
        version,
        max_length=config.max_length,
        too_long=config.too_long,
        template_arguments=config.template_arguments,
    )


def run(method: Method, config: Config, progress: Progress, stop: StopRequest) -> None:
    """Make or load the initial model, train it and write `output`. Raises as `train`."""
    prepare(config)
    if slow := slow_precision(config.precision, "cuda" if uses_gpu(config) else "cpu"):
        progress.tell("warning", message=f"precision: {slow}; float32, or a GPU, is faster")
    with failing_together(config.run_folder):
        model, tokenizer, base = _first_model(method, config)
        train(config, method, model, tokenizer, base, progress, stop)


def _first_model(method: Method, config: Config) -> tuple[Any, Any, dict[str, Any]]:
    """The model and tokenizer that the training starts from, and their provenance entries."""
    if isinstance(config, FromCheckpoint):
        return *checkpoints.load(config.base, config.base_sha256), {"base_sha256": checkpoint_hash(config.base)}
    if method.new_model is None:
        raise ValueError(f"{method.name}: expected a config with a base or a module that makes a model, got neither")
    return *import_module(method.new_model).make(config), {}


def train(
    config: Config,
    method: Method,
    model: Any,
    tokenizer: Any,
    base: Mapping[str, Any],
    progress: Progress,
    stop: StopRequest,
) -> None:
    """Train a model on the config's rows and write the checkpoint. `base` is the starting model's provenance.

    Raises Refused before the first step, Failed after it, and KeyboardInterrupt where `stop` was asked for.
    """
    render = renderer(config, model, tokenizer)
    found = load_rows(method, config, model, tokenizer, render)
    rows, aside = found.rows, found.aside
    _refuse_empty(rows, "learn from", render)
    if aside is not None:
        _refuse_empty(aside, "evaluate on", render)
    provenance = _provenance(config, method.name, {**base, "renderer": render.version, **found.provenance}, rows)
    last = _last_checkpoint(config, provenance)
    # These follow from the compared values, and older runs lack them.
    provenance |= {**found.counts, CUT: rows.too_long[CUT], SKIPPED: rows.too_long[SKIPPED]}
    if mlflow_run.is_wanted() and process_number() == 0:
        of = {"method": method.name, **{name: value for name, value in provenance.items() if name.endswith("_sha256")}}
        run = MlflowRun(config.run_folder, config.output.name, of, partial(_warn, progress), resumed=bool(last))
        progress.follow(run.tell)
    follower = ProgressCallback(progress, stop)
    weights = model.num_parameters()
    if config.uses_adapters:
        model = import_module("training.lora").with_adapters(model, config)
    trainer = (SpanTrainer if method.needs else TokenTrainer)(
        config,
        model,
        tokenizer,
        rows,
        aside,
        loss=method.loss,
        provenance=provenance,
        callbacks=_callbacks(config, follower, last),
    )
    follower.trainer = trainer
    sequences = len(rows.sequences)
    counts = {"rows": found.read, "sequences": sequences, "eval_rows": found.read_aside, "targets": rows.targets}
    progress.tell(
        "started", method=method.name, device=_device(trainer), parameters=weights, **counts,
        **found.counts, trained=sum(each.numel() for each in model.parameters() if each.requires_grad),
        **{name: rows.too_long[name] + (aside.too_long[name] if aside else 0) for name in TOO_LONG},
        resumed_from=last and last.name, processes=processes(),
        config={**_settings_without_paths(config), "threads": torch.get_num_threads(), "max_length": render.longest},
    )  # fmt: skip
    for message in found.warnings:
        _warn(progress, message)
    if last and is_over(last):
        trainer.take_up(last)
        _finish(config, trainer, tokenizer, provenance, progress, from_step=trainer.state.global_step)
        return
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    if follower.agree(trainer.args):
        raise KeyboardInterrupt
    trainer.check_weights()
    _finish(config, trainer, tokenizer, provenance, progress)


def _warn(progress: Progress, message: str) -> None:
    progress.tell("warning", message=message)


def _refuse_empty(rows: Rows, purpose: str, render: Renderer) -> None:
    """Raises Refused where all rows were left out."""
    if not len(rows):
        raise TrainingRefused(
            f"expected a row to {purpose}, got {rows.too_long[SKIPPED]} that do not fit into {render.longest} tokens"
            " and no other; raise max_length, or set too_long to truncate"
        )


def _settings_without_paths(config: Config) -> dict[str, Any]:
    """All fields except files and folders, with defaults for those not given."""
    return {name: value for name, value in config if name not in _NO_SETTINGS}


def _provenance(config: Config, method: str, base: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    """Everything that determines the model. Files by name and hash, as folders differ between machines."""
    named = {name: value.name if isinstance(value, Path) else value for name, value in config}
    facts = {"method": method, "seed": config.seed, **base, "data_sha256": file_hash(config.data)}
    if config.eval_data is not None:
        facts["eval_data_sha256"] = file_hash(config.eval_data)
    if config.chat_template is not None:
        facts["chat_template_sha256"] = file_hash(config.chat_template)
    facts["processes"] = processes()
    counts = {"sequences": len(rows.sequences), "targets": rows.targets, SHORTENED: rows.too_long[SHORTENED]}
    return {**facts, **counts, "config": {name: value for name, value in named.items() if name not in _NOT_RECORDED}}


def _last_checkpoint(config: Config, provenance: Mapping[str, Any]) -> Path | None:
    """The checkpoint to resume from. Raises Refused where the run folder holds another training."""
    run = config.run_folder
    if process_number() == 0:
        for part in run.glob(f".{PREFIX}*.part"):
            shutil.rmtree(part, ignore_errors=True)
        for path in () if config.resume else checkpoints_in(run):
            shutil.rmtree(path, ignore_errors=True)
    wait_for_all()
    found = checkpoints_in(run)
    if not found:
        return None
    checkpoints.check_unchanged(found[-1])
    then = _as_of_today(config, checkpoints.read_provenance(found[-1]))
    for name, value in provenance.items():
        if then.get(name) != value:
            if name == "processes":
                raise TrainingRefused(
                    f"{run}: expected {then[name]} processes, as the run was begun with, got {value}; start as many, or"
                    " set resume: false"
                )
            other = (
                next((each for each, new in value.items() if then["config"].get(each) != new), "")
                if name == "config"
                else name
            )
            raise TrainingRefused(
                f"{run}: expected a training like the one that was begun there, got another {other};"
                " name another run folder, or set resume: false to start over"
            )
    return found[-1]


def _as_of_today(config: Config, then: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's provenance, with fields introduced later set to their defaults."""
    later = _CAME_LATER - _NOT_RECORDED
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in type(config).model_fields.items()
        if name in later
    }
    return {
        "processes": 1,
        "renderer": FIRST_RENDERER,
        **then,
        "config": {**defaults, **with_new_names(then.get("config", {}))},
    }


def _callbacks(config: Config, follower: ProgressCallback, last: Path | None) -> list[TrainerCallback]:
    logs = config.run_folder / "tensorboard"
    begun = int(last.name.removeprefix(PREFIX)) + 1 if last else 0
    callbacks: list[TrainerCallback] = [follower]
    if process_number() == 0:
        callbacks.append(TensorBoardCallback(SummaryWriter(str(logs), purge_step=begun)))
        if _is_wandb_set_up():
            os.environ.setdefault("WANDB_DIR", str(config.run_folder))
            os.environ.setdefault("WANDB_NAME", config.output.name)
            callbacks.append(WandbCallback())
    if config.patience:
        callbacks.append(EarlyStoppingCallback(config.patience))
    return callbacks


def _is_wandb_set_up() -> bool:
    """Whether Weights & Biases is installed and enabled by its environment variables."""
    wanted = any(os.environ.get(name) for name in ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_MODE"))
    return wanted and os.environ.get("WANDB_MODE") != "disabled" and find_spec("wandb") is not None


def _device(trainer: TokenTrainer) -> str:
    """The device that the training runs on; with several processes, also their number and how they share the work."""
    device = trainer.args.device
    alone = processes() == 1 and not trainer.shards_weights
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name(device)}{f' ({device})' if alone else ''}"
    else:
        name = f"{device.type} ({torch.get_num_threads()} threads)"
    launcher = os.environ.get(LAUNCHED_WITH)
    by = f" ({launcher})" if launcher else ""
    return f"{name}{by}" if alone else f"{processes()} × {name}, {trainer.sharing}{by}"


def _finish(
    config: Config,
    trainer: TokenTrainer,
    tokenizer: Any,
    provenance: Mapping[str, Any],
    progress: Progress,
    from_step: int | None = None,
) -> None:
    """Write the best weights (the last ones if nothing was evaluated) as the output; then delete the run's checkpoints.

    The last weights are the trainer's or, if nothing was left to train, those of the checkpoint of `from_step`.
    Adapters, and weights split across processes, are taken from the last checkpoint, which has them whole.
    """
    if not trainer.args.should_save:
        return
    standing = trainer.standing()
    best = trainer.state.best_global_step
    step = best if best and best != standing["step"] else from_step
    if step is None and (config.uses_adapters or trainer.shards_weights):
        step = standing["step"]
    folder = None if step is None else config.run_folder / f"{PREFIX}{step}"
    if folder is not None:
        standing = {name: value for name, value in checkpoints.read_provenance(folder).items() if name in standing}
    with checkpoints.written(config.output) as part:
        if isinstance(config, FromCheckpoint) and config.keep_adapters and folder is not None:
            provenance = {**provenance, **import_module("training.lora").keep_adapters(config, folder, part)}
        else:
            last = trainer.accelerator.unwrap_model(trainer.model)
            (last if folder is None else _model_of_step(config, folder)).save_pretrained(part)
        tokenizer.save_pretrained(part)
        found = checkpoints.write_provenance(part, {**provenance, **standing})
    for path in checkpoints_in(config.run_folder):
        shutil.rmtree(path)
    progress.tell("finished", output=str(config.output), checkpoint_sha256=found, **standing)


def _model_of_step(config: Config, folder: Path) -> Any:
    """The model of a run's checkpoint, with any adapters merged into the weights of the base."""
    unset_hf_deepspeed_config()  # otherwise the main process would wait for the others to load their parts
    if isinstance(config, FromCheckpoint) and config.uses_adapters:
        base, _ = checkpoints.load(config.base, config.base_sha256)
        return import_module("training.lora").merged(base, folder)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
