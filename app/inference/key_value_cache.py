"""Keys and values of the sequences that a model continues, side by side, each from column 0 on.

A row has as many columns as it has tokens, so nothing is padded on the left, and rows may come and go between two
steps. Attention is defined by position alone: a token sees everything in its own row up to itself.
"""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from app.inference.blocks import zeros

_COLUMNS = 64  # growth step of the storage


def whole_columns(columns: int) -> int:
    """The number of columns rounded up to the storage granularity."""
    return -(-columns // _COLUMNS) * _COLUMNS


class KeyValueCache(Cache):
    """Storage of each layer is (keys and values, row, head, column, width). The first `number` rows are in use."""

    def __init__(self, model: Any) -> None:
        super().__init__(layers=[])
        self.number = 0
        self._model = model
        self._layers = model.config.get_text_config().num_hidden_layers
        self._storage: list[Tensor] = []  # by layer
        self._rows = self._columns = 0  # allocated; one extra column receives the padding
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in signature(model.forward).parameters else {}
        self._span = slice(0)
        self._place: tuple[Tensor, Tensor]
        self._longest = 0

    def forward(self, begin: int, pieces: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """The logits (N, V) after each piece of a sequence; rows from `begin` on hold `starts` tokens before it."""
        width = max(map(len, pieces))
        paddings = [width - len(piece) for piece in pieces]
        self._longest = max(start + len(piece) for start, piece in zip(starts, pieces, strict=True))
        self.reserve(begin + len(pieces), self._longest)
        device, dtype = self._model.device, self._model.dtype
        ids = torch.tensor([[0] * padding + list(piece) for padding, piece in zip(paddings, pieces, strict=True)])
        offsets = torch.tensor([start - padding for padding, start in zip(paddings, starts, strict=True)])
        steps = torch.arange(width)
        padded = steps < torch.tensor(paddings)[:, None]  # (N, C)
        positions = (offsets[:, None] + steps).masked_fill(padded, 0)
        columns = positions.masked_fill(padded, self._columns).to(device)
        positions = positions.to(device)
        self._span = slice(begin, begin + len(pieces))
        self._place = torch.arange(begin, begin + len(pieces), device=device)[:, None], columns
        hidden = torch.arange(self._longest, device=device) > positions[:, None, :, None]  # (N, 1, C, longest)
        mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, torch.finfo(dtype).min)
        found = self._model(
            input_ids=ids.to(device), attention_mask=mask, position_ids=positions, past_key_values=self,
            use_cache=True, **self._last_only,
        )  # fmt: skip
        logits: Tensor = found.logits[:, -1]
        return logits

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_args: Any, **_more: Any
    ) -> tuple[Tensor, Tensor]:
        """Called by each layer with the new states, (N, heads, C, width); returns all of them: (N, heads, longest,
        width).
        """
        if not self._storage:
            self._storage = self._allocated(key_states[0])
        rows, columns = self._place
        keys, values = self._storage[layer_idx]
        keys[rows, :, columns] = key_states.transpose(1, 2)
        values[rows, :, columns] = value_states.transpose(1, 2)
        return keys[self._span, :, : self._longest], values[self._span, :, : self._longest]

    def get_seq_length(self, _layer_idx: int = 0) -> int:
        """The length for models that ask for it, although they are given all positions."""
        return self._longest

    @property
    def bytes_a_token(self) -> int:
        """The bytes of one column of a row; 0 before anything was computed."""
        return sum(layer[:, 0, :, 0].nbytes for layer in self._storage)

    @property
    def room(self) -> tuple[int, int]:
        """The allocated numbers of rows and columns."""
        return self._rows, self._columns

    @property
    def nbytes(self) -> int:
        """The bytes of the storage."""
        return sum(layer.nbytes for layer in self._storage)

    def get(self, row: int, begin: int, end: int) -> Tensor:
        """A copy of columns of a non-empty row: (layers, 2, heads, end - begin, width)."""
        if not self._storage:
            raise ValueError("expected a row that holds something, got an empty one")
        layers = [layer[:, row, :, begin:end] for layer in self._storage]
        return torch.stack(layers, out=zeros((len(layers), *layers[0].shape), layers[0]))

    def put(self, row: int, pieces: Sequence[Tensor]) -> None:
        """Write pieces returned by `get` into a row, one after the other."""
        self.reserve(row + 1, sum(piece.shape[3] for piece in pieces))
        if not self._storage:
            self._storage = self._allocated(pieces[0][0, 0])
        column = 0
        for piece in pieces:
            for layer, new in zip(self._storage, piece, strict=True):
                layer[:, row, :, column : column + piece.shape[3]] = new
            column += piece.shape[3]

    def copy(self, row: int, to: int, length: int) -> None:
        """Copy the first columns of a row to another allocated row."""
        for layer in self._storage:
            layer[:, to, :, :length] = layer[:, row, :, :length]

    def remove(self, row: int, last_length: int) -> None:
        """Take a row out; the last row, with `last_length` columns, moves to its place."""
        self.number -= 1
        if row < self.number:
            self.copy(self.number, row, last_length)

    def clear(self) -> None:
        """Drop all rows, and free their memory."""
        self.number = self._rows = self._columns = 0
        self._storage = []

    def reserve(self, rows: int, columns: int) -> None:
        """Make room for this size and keep the content. Done layer by layer, so that little is held twice."""
        if rows > self._rows or columns > self._columns:
            self.resize(max(rows, self._rows), max(columns, self._columns))

    def resize(self, rows: int, columns: int) -> None:
        """Set the storage to this size, which must be enough for its content."""
        known, kept = min(columns, self._columns), min(rows, self._rows)
        self._rows, self._columns = rows, whole_columns(columns)
        for at, old in enumerate(self._storage):
            new = self._storage[at] = self._layer(old[0, 0])
            new[:, :kept, :, :known] = old[:, :kept, :, :known]

    def _allocated(self, like: Tensor) -> list[Tensor]:
        """Storage for the heads and the width of (heads, _, width)."""
        return [self._layer(like) for _ in range(self._layers)]

    def _layer(self, like: Tensor) -> Tensor:
        return zeros((2, self._rows, like.shape[0], self._columns + 1, like.shape[2]), like)
