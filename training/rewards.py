"""The rewards of moves: checked, and optionally made relative to the average for the player's role."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from training.data import Conversation
from training.errors import TrainingRefused, shown
from training.methods.base import LARGEST, SAMPLED, SUPERVISED


class RoleBaselines:
    """The running mean of a row's rewards for each game and role, starting at 0: b ← decay·b + (1 − decay)·R.

    Source: role-conditioned advantage estimation in SPIRAL, arXiv 2506.24119.
    """

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._means: defaultdict[tuple[str, str], float] = defaultdict(float)

    def relative(self, row: Conversation) -> Conversation:
        """The row with r − b in place of its moves' rewards; then b is updated with their mean.

        The previous mean is subtracted, so that an advantage does not depend on its own reward. Raises Refused for a
        move without its player's role.
        """
        found: dict[str, list[float]] = {}
        game = str(row.game)
        messages = list(row.messages)
        for number, each in enumerate(row.messages):
            if not is_move(each):
                continue
            role = each.get("player_role")
            if not isinstance(role, str):
                raise TrainingRefused(
                    f"{row.place}, message {number + 1}: player_role: expected the player's role, got {shown(role)};"
                    " set advantage: reward to do without"
                )
            messages[number] = {**each, "reward": each["reward"] - self._means[game, role]}
            found.setdefault(role, []).append(each["reward"])
        for role, rewards in found.items():
            mean = self._means[game, role]
            self._means[game, role] = self._decay * mean + (1 - self._decay) * math.fsum(rewards) / len(rewards)
        return replace(row, messages=tuple(messages))


def rewarded_rows(rows: Iterable[Conversation], baselines: RoleBaselines | None = None) -> list[Conversation]:
    """The rows in order: those of type `sft` without rewards, the others with a reward for each move.

    With `baselines`, rewards become relative to them. Raises Refused, naming row and message.
    """
    found = []
    for row in rows:
        if row.type not in (None, SUPERVISED, SAMPLED):
            expected = f'"{SUPERVISED}", "{SAMPLED}" or none'
            raise TrainingRefused(f"{row.place}: type: expected {expected}, got {shown(row.type)}")
        if row.type == SUPERVISED:
            bare = ({name: value for name, value in each.items() if name != "reward"} for each in row.messages)
            found.append(replace(row, messages=tuple(bare)))
            continue
        for number, each in enumerate(row.messages, 1):
            if is_move(each) and not _is_number(each.get("reward")):
                raise TrainingRefused(
                    f"{row.place}, message {number}: reward: expected a number from {-LARGEST:.0f} to"
                    f" {LARGEST:.0f}, got {shown(each.get('reward'))};"
                    f' a supervised row has "type": "{SUPERVISED}"'
                )
        found.append(baselines.relative(row) if baselines else row)
    return found


def check_policy(rows: Iterable[Conversation], reference_sha256: str) -> None:
    """Raises Refused for a row played by a checkpoint other than the reference, as its probabilities do not apply."""
    for row in rows:
        if row.type != SUPERVISED and row.policy not in (None, reference_sha256):
            raise TrainingRefused(
                f"{row.place}: policy: expected {reference_sha256[:12]}…, the reference, got {shown(row.policy, 20)};"
                " name the checkpoint that played these rows as reference"
            )


def warnings_about_kl(rows: Iterable[Conversation], kl: float) -> list[str]:
    """A line if most moves with a reward above 0 have one below the weight `kl`, and so become less likely.

    As gradients flow through A = r − β·(ℓ − ℓ_ref), A·e^(ℓ − ℓ_ref) is greatest at ℓ − ℓ_ref = r/β − 1.
    """
    rewards = [each["reward"] for row in rows for each in row.messages if is_move(each) and each.get("reward", 0) > 0]
    below = sum(reward < kl for reward in rewards)
    if 2 * below <= len(rewards):
        return []
    got = f"{kl:g}, which is above {below} of the {len(rewards)} rewards above 0"
    return [f"kl: expected a weight below most rewards, got {got}; their moves become less likely"]


def is_move(message: Mapping[str, Any]) -> bool:
    """Whether a message is an assistant's move to be learnt."""
    return message["role"] == "assistant" and bool(message.get("weight", 1))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
