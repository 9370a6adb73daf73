"""The environments: a rollout is a match, whose trained seat the policy plays, against a script or against itself.

Source: verifiers 0.2 (MIT licence), whose `MultiTurnEnv` asks the policy, and whose rubrics read the state.
"""

import json
from collections.abc import Sequence
from typing import Any

import verifiers as vf
from datasets import Dataset
from verifiers.utils.message_utils import maybe_normalize_messages

from parlor_games.matches import SeatInMatch, Task, formula_rewards, tasks

SCRIPTED, SELF = "scripted", "self"
UTILITY, FORMULA = "utility", "formula"
_PLAYED, SAID = "parlor_match", "parlor_said"  # in the state of a rollout: the match, and [seat, text] of each answer


def make_environment(
    game: str,
    *,
    opponent: str = SCRIPTED,
    rewards: str = UTILITY,
    examples: int = 1000,
    eval_examples: int = 100,
    seed: int = 0,
    style: str = "full",
    manner: str = "plain",
    decay: float = 0.8,
    **config: Any,
) -> vf.Environment:
    """An environment of one game. Raises ValueError for an unknown opponent or rewards, and as `tasks` does."""
    for name, value, known in (("opponent", opponent, (SCRIPTED, SELF)), ("rewards", rewards, (UTILITY, FORMULA))):
        if value not in known:
            raise ValueError(f"{name}: expected {' or '.join(known)}, got {value}")

    def rows(number: int, *, held_out: bool) -> Dataset:
        found = tasks(game, number, seed, held_out=held_out, **config)
        return Dataset.from_list([_row(task, style) for task in found])

    return ParlorEnvironment(
        opponent=opponent,
        style=style,
        manner=manner,
        dataset=rows(examples, held_out=False),
        eval_dataset=rows(eval_examples, held_out=True),
        rubric=_rubric(rewards, decay),
    )


def _row(task: Task, style: str) -> dict[str, Any]:
    """A row of the dataset. Where the partner begins, its first move joins the prompt when the match is played."""
    begun = SeatInMatch(task, style)
    prompt = begun.messages() if begun.own_turn else [{"role": "user", "content": f"{task.game}: the partner begins."}]
    return {"prompt": prompt, "answer": "", "info": json.dumps(task._asdict())}


class ParlorEnvironment(vf.MultiTurnEnv):
    """Plays matches. Each prompt is the one that Parlor would send: corrections of a refused answer are in it until the
    turn is over, and not after that.
    """

    def __init__(self, opponent: str, style: str, manner: str, **options: Any) -> None:
        super().__init__(**options)
        self._opponent = opponent
        self._style = style
        self._manner = manner

    async def setup_state(self, state: vf.State) -> vf.State:
        """Begin the match of the row, and have the partner move where it is its turn."""
        info = state["info"]
        given = json.loads(info) if isinstance(info, str) else dict(info)
        state[_PLAYED] = played = SeatInMatch(Task(**given), self._style, self._manner)
        state[SAID] = played.said
        await self._partner(state)
        if played.match.over:  # the partner may have lost it by its first move
            state["final_env_response"] = []
        else:
            state["prompt"] = vf_messages(played.messages())
        return state

    async def get_prompt_messages(self, state: vf.State) -> vf.Messages:
        """Play the answer, and the partner's moves; then the next prompt, or the end."""
        played: SeatInMatch = state[_PLAYED]
        if state["trajectory"]:
            played.answer(text_of(state["trajectory"][-1]["completion"]))
            await self._partner(state)
            if played.match.over:
                state["final_env_response"] = []
                return []
        return vf_messages(played.messages())

    async def env_response(self, messages: vf.Messages, state: vf.State, **_: Any) -> vf.Messages:
        """What the policy reads after its answer: the messages that its next prompt has behind it."""
        return (await self.get_prompt_messages(state))[len(messages) :]

    async def render_completion(self, state: vf.State) -> None:
        """All answers with what was read between them."""
        state["completion"] = []
        for number, step in enumerate(state["trajectory"]):
            state["completion"] += [*step["prompt"][-1:], *step["completion"]] if number else [*step["completion"]]

    async def _partner(self, state: vf.State) -> None:
        """The partner's moves, until it is the trained seat's turn."""
        played: SeatInMatch = state[_PLAYED]
        while not played.match.over and not played.own_turn:
            if self._opponent == SCRIPTED:
                played.answer(played.scripted_text(), scripted=True)
            else:
                response = await self.get_model_response(state, vf_messages(played.messages()))
                played.answer(response.message.content or "")


def _rubric(rewards: str, decay: float) -> vf.Rubric:
    def utility(state: vf.State) -> float:
        played: SeatInMatch = state[_PLAYED]
        return played.utility(played.task.seat)

    def refused_answers(state: vf.State) -> float:
        return float(sum(not each for each in state[_PLAYED].accepted))

    def formula(states: list[vf.State]) -> list[float]:
        found = formula_rewards([state[_PLAYED] for state in states], decay)
        for state, each in zip(states, found, strict=True):
            for step, reward in zip(state["trajectory"], each.answers, strict=False):
                step["reward"] = reward
        return [each.total for each in found]

    first, second = (utility, formula) if rewards == UTILITY else (formula, utility)
    rubric = vf.Rubric(funcs=[first], weights=[1.0])
    if second is utility:
        rubric.add_metric(utility)
    rubric.add_metric(refused_answers)
    return rubric


def vf_messages(chat: Sequence[dict[str, str]]) -> Any:
    """A chat as the messages of verifiers."""
    return maybe_normalize_messages([dict(each) for each in chat], field_name="prompt")


def text_of(completion: Sequence[Any]) -> str:
    """The text of an answer, whose messages are objects or dicts, by the release."""
    found = []
    for message in completion:
        content = message.get("content") if isinstance(message, dict) else getattr(message, "content", None)
        if isinstance(content, str):
            found.append(content)
        elif content is not None:
            found.extend(part.get("text", "") for part in content if isinstance(part, dict))
    return "".join(found)
