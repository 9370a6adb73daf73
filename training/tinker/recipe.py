"""A training at Tinker, step by step: every step is paid for, so a kill repeats at most one.

The tokens of a paid request are counted here before it is sent; after every `save_every` steps Tinker saves weights and
optimizer under the step's number. To resume, a training asks Tinker which states exist and takes the last.
"""

import json
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

from transformers import AutoTokenizer

from training.data import EpochOrder, Rows
from training.errors import StepFailed, TrainingRefused, one_line
from training.hashes import file_hash
from training.log_probs import ReferenceLogProbs
from training.methods.base import HERE_ONLY, Config, FromCheckpoint, Method
from training.methods.reference import WithReference
from training.progress import Progress, StopRequest
from training.rendering import TOO_LONG, MarkedTokens, Renderer
from training.rows import ReferenceModel, TrainingRows, render_config_rows
from training.span_data import SpanRows
from training.tinker.config import TinkerPlace
from training.tinker.losses import (
    SpanStepLoss,
    bare_data,
    log_probs_of,
    mean_token_loss,
    sequence_log_probs,
    token_data,
    token_loss,
)
from training.tinker.service import SavedState, TinkerService
from training.tinker.state import read_state, write_whole

_USUAL_LENGTH = 32_768  # tokens, where neither the service nor the config says more
_AT_ONCE = 64  # sequences whose ℓ_ref is asked for in a request
_ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}  # those of the trainings here


def train(method: Method, config: Config, place: TinkerPlace, progress: Progress, stop: StopRequest) -> None:
    """Train, and write Tinker's name for the result into the file `config.output`.

    Raises TrainingRefused before the first step, TrainingFailed after it, KeyboardInterrupt where `stop` was asked for.
    """
    assert isinstance(config, FromCheckpoint)  # noqa: S101 - a method from nothing has no base at Tinker
    service = TinkerService(place)
    try:
        _Training(method, config, place, service, progress, stop).run()
    finally:
        service.close()


class _Training:
    """See `train`."""

    def __init__(
        self,
        method: Method,
        config: FromCheckpoint,
        place: TinkerPlace,
        service: TinkerService,
        progress: Progress,
        stop: StopRequest,
    ) -> None:
        self._method = method
        self._config = config
        self._place = place
        self._service = service
        self._progress = progress
        self._stop = stop
        self._state = read_state(config.run_folder)
        self._client: Any = None
        self._figures: dict[str, float] = {}

    def run(self) -> None:
        """Train, or finish what a killed training left."""
        last, result = self._saved()
        if result is not None:
            self._record_result(result)
            return
        longest = self._service.longest()
        info = self._use(self._create_training_client() if last is None else self._service.resume(last.path))
        render = self._renderer(info.model_data, longest)
        found = render_config_rows(self._method, self._config, render, lambda config: self._reference(config, render))
        self._refuse_empty(found.rows, "learn from", render)
        if found.aside is not None:
            self._refuse_empty(found.aside, "evaluate on", render)
        steps = _Steps(found.rows, self._config)
        self._state.steps = steps.count
        self._state.write()
        self._tell_started(found, render, info, last)
        self._stop.gentle = True
        self._take_steps(found, steps, 0 if last is None else last.step)
        self._stop.gentle = False
        if self._state.best not in (None, self._state.path):
            self._use(self._service.resume(self._state.best))
        self._record_result(self._service.save_result(self._client))

    def _saved(self) -> tuple[SavedState | None, str | None]:
        """The last state and the result, if any, from Tinker's records and those kept here."""
        found, result = self._service.saved(self._state.runs)
        last = max(filter(None, (found, self._state.last)), default=None)
        if result is None:
            done = 0 if last is None else last.step
            self._state.evaluations = [each for each in self._state.evaluations if each[0] <= done]
        if last is not None:
            self._state.saved(last)
        return last, result

    def _create_training_client(self) -> Any:
        """A client with the weights that the training starts from."""
        return self._service.begin(self._config.lora_rank, self._config.seed)

    def _use(self, client: Any) -> Any:
        """Train with this client from now on; returns Tinker's info on its run."""
        self._client = client
        info = client.get_info()
        self._state.runs.append(str(info.model_id))
        self._state.write()
        return info

    # ---- Rows ----------------------------------------------------------------------

    def _renderer(self, model: Any, longest: int | None) -> Renderer:
        """The renderer of rows as tokens. Raises Refused without the tokenizer of the base."""
        name = self._place.tokenizer or model.tokenizer_id or str(model.model_name).partition(":")[0]
        try:
            tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        except Exception as error:  # the library raises whatever its readers and its transports raise
            raise TrainingRefused(
                f"tokenizer: expected that of {model.model_name} as {name}, a folder or a name at Hugging Face, got"
                f" {one_line(error)}; name another in the field tokenizer"
            ) from None
        most = longest or _USUAL_LENGTH
        return Renderer(
            tokenizer,
            most,
            max_length=self._config.max_length,
            too_long=self._config.too_long,
            template_arguments=self._config.template_arguments,
        )

    def _reference(self, config: WithReference, render: Renderer) -> ReferenceModel:
        """The base at Tinker as the reference model."""
        known_as = f"{self._place.model} {render.tokenizer_hash}"
        log_probs = _BaseLogProbs(config, config.cache_folder, known_as, None, 0)
        log_probs.ask = self._log_probs_under_the_base
        return ReferenceModel(self._place.model, log_probs)

    def _log_probs_under_the_base(self, sequences: Sequence[MarkedTokens]) -> list[Any]:
        """The log-probabilities of sequences (T − 1,) under the weights that the training starts from."""
        fresh = self._state.path is None
        return self._log_probs(self._client if fresh else self._create_training_client(), sequences)

    def _log_probs(self, client: Any, sequences: Sequence[MarkedTokens]) -> list[Any]:
        """The log-probabilities of sequences (T − 1,) under the weights of a client, without a gradient."""
        self._state.count(_number_of_tokens(sequences))
        data = bare_data(self._service.types, sequences)
        outputs = self._service.ask(lambda: client.forward(data, "cross_entropy")).loss_fn_outputs
        return [log_probs_of(each) for each in outputs]

    @staticmethod
    def _refuse_empty(rows: Rows, purpose: str, render: Renderer) -> None:
        if not len(rows):
            raise TrainingRefused(
                f"expected a row to {purpose}, got none that fits into {render.longest} tokens; raise max_length, or"
                " set too_long to truncate"
            )

    def _tell_started(self, found: TrainingRows, render: Renderer, info: Any, last: SavedState | None) -> None:
        rows, aside = found.rows, found.aside
        counts = {"rows": found.read, "sequences": len(rows.sequences), "eval_rows": found.read_aside}
        rank = info.lora_rank or self._config.lora_rank
        names = {*self._method.job_fields} - {*HERE_ONLY}
        settings = {name: value for name, value in self._config if name in names}
        self._progress.tell(
            "started", method=self._method.name, parameters=None, trained=None, targets=rows.targets, **counts,
            **found.counts,
            device=f"Tinker ({info.model_data.model_name}, adapters of rank {rank})",
            **{name: rows.too_long[name] + (aside.too_long[name] if aside else 0) for name in TOO_LONG}, processes=1,
            resumed_from=None if last is None else f"step {last.step}",
            config={**settings, "max_length": render.longest},
        )  # fmt: skip
        for message in found.warnings:
            self._progress.tell("warning", message=message)

    # ---- Steps ---------------------------------------------------------------------

    def _take_steps(self, found: TrainingRows, steps: "_Steps", done: int) -> None:
        """Take the steps after the first `done`. Raises KeyboardInterrupt where the training was to stop."""
        for step, chosen in enumerate(steps, 1):
            if step <= done:
                continue
            if self._is_patience_over():
                return
            began = time.perf_counter()
            sequences, self._figures = self._take_step(found.rows, chosen, steps.learning_rate(step), step)
            where = {"step": step, "steps": steps.count, "epoch": step / steps.in_epoch}
            self._progress.tell(
                "step", **where, lr=steps.learning_rate(step), gradient_norm=None, memory_mb=None,
                trained_tokens=self._state.tokens, **self._figures,
                tokens_per_second=round(_number_of_tokens(sequences) / max(time.perf_counter() - began, 1e-9), 1),
            )  # fmt: skip
            aside = found.aside if steps.ends_in_evaluation(step) else None
            if aside is not None:
                loss = self._held_out_loss(aside, step)
                self._state.evaluations.append((step, {**self._figures, "eval_loss": loss}))
                self._state.write()
                self._progress.tell("eval", **where, loss=loss, trained_tokens=self._state.tokens)
            if aside is not None or step % (self._config.save_every or 1) == 0 or self._stop.asked:
                self._save(step)
            if self._stop.asked and step < steps.count and not self._is_patience_over():
                raise KeyboardInterrupt

    def _is_patience_over(self) -> bool:
        """Whether `patience` or more evaluations have followed the best one."""
        best = self._state.best_evaluation
        after = sum(step > best[0] for step, _ in self._state.evaluations) if best else 0
        return 0 < self._config.patience <= after

    def _held_out_loss(self, rows: Rows, step: int) -> float:
        """The loss over the held-out rows, computed as in `training.trainer` and `training.span_trainer`."""
        sequences = rows.sequences
        log_probs: list[Any] = []
        for begin in range(0, len(sequences), _AT_ONCE):
            log_probs += self._log_probs(self._client, sequences[begin : begin + _AT_ONCE])
        if isinstance(rows, SpanRows):
            loss = SpanStepLoss(self._method.loss, self._config, rows.items).loss_of(log_probs)
        else:
            loss = mean_token_loss(sequences, log_probs)
        if not math.isfinite(loss):
            raise StepFailed(f"step {step}: expected an evaluation loss that is a number, got {loss}")
        return loss

    def _take_step(
        self, rows: Rows, chosen: Sequence[int], rate: float, step: int
    ) -> tuple[Sequence[MarkedTokens], dict[str, float]]:
        """Take one step on items; returns their sequences, and the loss and its metrics before the weights change."""
        if isinstance(rows, SpanRows):
            items = [rows.items[at] for at in chosen]
            sequences = [each for item in items for each in item.sequences]
            loss = SpanStepLoss(self._method.loss, self._config, items)
            data = bare_data(self._service.types, sequences)
            self._state.count(2 * _number_of_tokens(sequences))  # of the forward pass alone, and with the gradient
            self._service.ask(lambda: self._client.forward_backward_custom(data, loss))
            figures = {"loss": loss.value, **loss.figures}
        else:
            sequences = [rows.sequences[at] for at in chosen]
            data = token_data(self._service.types, sequences)
            self._state.count(_number_of_tokens(sequences))
            found = self._service.ask(lambda: self._client.forward_backward(data, "cross_entropy"))
            figures = {"loss": token_loss(data, found.loss_fn_outputs)}
        if not math.isfinite(figures["loss"]):
            raise StepFailed(f"step {step}: expected a loss that is a number, got NaN or infinity; lower learning_rate")
        adam = self._service.types.AdamParams(
            learning_rate=rate,
            weight_decay=self._config.weight_decay,
            grad_clip_norm=self._config.max_grad_norm,
            **_ADAM,
        )
        self._service.ask(lambda: self._client.optim_step(adam))
        return sequences, figures

    def _save(self, step: int) -> None:
        """Save a state; then delete those that are no longer needed to resume."""
        saved = self._service.save_state(self._client, step)
        stale = self._state.saved(saved)
        self._progress.tell("saved", step=step, checkpoint=saved.path)
        for path in stale:
            self._service.delete(path)

    def _record_result(self, result: str) -> None:
        """Write down Tinker's name for the result, and delete the states that are no longer needed to resume."""
        step, metrics = self._state.best_evaluation or (self._state.steps, self._figures)
        made = {
            "model": result, "step": step, "tokens": self._state.tokens, "base": self._place.model,
            "runs": self._state.runs, "data_sha256": file_hash(self._config.data), "metrics": metrics,
        }  # fmt: skip
        write_whole(self._config.output, json.dumps(made, indent=2))
        self._service.delete_but(self._state.runs, result)
        self._progress.tell("finished", output=result, step=step, steps=self._state.steps, metrics=metrics)


class _BaseLogProbs(ReferenceLogProbs):
    """ℓ_ref of spans, requested from Tinker for several sequences at a time; each response is cached at once."""

    ask: Any

    def _of_model(self, sequences: Sequence[MarkedTokens]) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        for begin in range(0, len(sequences), _AT_ONCE):
            found += super()._of_model(sequences[begin : begin + _AT_ONCE])
        return found

    def _computed(self, sequences: Sequence[MarkedTokens]) -> Any:
        return sequence_log_probs(sequences, self.ask(sequences))


class _Steps:
    """The steps of a training: the items of each step depend only on seed and epoch."""

    def __init__(self, rows: Rows, config: Config) -> None:
        self._size = config.batch * config.accumulation
        self._order = EpochOrder(rows, self._size, config.seed)
        self._config = config
        self.in_epoch = math.ceil(len(rows) / self._size)
        self.count = config.max_steps or math.ceil(config.epochs * self.in_epoch)

    def __iter__(self) -> Iterator[Sequence[int]]:
        for epoch in range(math.ceil(self.count / self.in_epoch)):
            self._order.set_epoch(epoch)
            chosen = list(self._order)
            for at in range(min(self.in_epoch, self.count - epoch * self.in_epoch)):
                yield chosen[at * self._size : (at + 1) * self._size]

    def ends_in_evaluation(self, step: int) -> bool:
        """Whether the held-out rows are evaluated on after this step (counted from 1)."""
        if self._config.eval_every is not None:
            return step % self._config.eval_every == 0
        return step % self.in_epoch == 0 or step == self.count

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step (counted from 1). It is never 0, as each step is paid for."""
        warmup = min(math.ceil(self._config.warmup * self.count), self.count - 1)
        if step <= warmup:
            return self._config.learning_rate * step / (warmup + 1)
        share = (step - 1 - warmup) / max(1, self.count - warmup)
        factor = {"cosine": 0.5 * (1 + math.cos(math.pi * share)), "linear": 1 - share, "constant": 1.0}
        return self._config.learning_rate * factor[self._config.schedule]


def _number_of_tokens(sequences: Sequence[MarkedTokens]) -> int:
    return sum(len(each.ids) - 1 for each in sequences)
