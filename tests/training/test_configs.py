"""The files that training comes with are ones that accelerate, transformers and the methods understand."""

import json
from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.utils import DistributedType
from accelerate.utils.deepspeed import HfDeepSpeedConfig
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from app.core.config import LAUNCHERS, ROOT, load_settings
from app.core.errors import Invalid
from training.config import read_config
from training.errors import TrainingRefused
from training.launch import find_cause, find_launcher, main
from training.methods import all_methods

RECIPES = {
    "spag-imitation": "sft-kl",
    "spag-offline-po": "offline-po",
    "stable-alignment": "stable-alignment",
    "lm-self-play-sft": "sft",
}
SHARING = {
    "one-gpu": DistributedType.NO,
    "ddp": DistributedType.MULTI_GPU,
    "fsdp": DistributedType.FSDP,
    "zero2": DistributedType.DEEPSPEED,
    "zero3": DistributedType.DEEPSPEED,
    "zero3-offload": DistributedType.DEEPSPEED,
}


def test_every_launcher_is_a_config_of_accelerate() -> None:
    assert {path.stem for path in LAUNCHERS.glob("*.yaml")} == SHARING.keys()
    for name, sharing in SHARING.items():
        config = ClusterConfig.from_yaml_file(str(find_launcher(name)))
        assert config.distributed_type == sharing
    assert (
        ClusterConfig.from_yaml_file(str(find_launcher("fsdp"))).fsdp_config["fsdp_state_dict_type"]
        == "FULL_STATE_DICT"
    )


def test_deepspeed_gathers_whole_weights_and_takes_its_numbers_from_the_training() -> None:
    for name, (stage, offload) in {"zero2": (2, False), "zero3": (3, False), "zero3-offload": (3, True)}.items():
        path = ROOT / ClusterConfig.from_yaml_file(str(find_launcher(name))).deepspeed_config["deepspeed_config_file"]
        config = HfDeepSpeedConfig(json.loads(path.read_text()))
        assert config.is_zero3() == (stage == 3)
        assert config.is_offload() == offload
        assert config.get_value("zero_optimization.stage3_gather_16bit_weights_on_model_save", stage == 2)
        assert config.get_value("optimizer.params.lr") == config.get_value("train_batch_size") == "auto"


@pytest.mark.parametrize("name", RECIPES)
def test_the_settings_of_the_papers_are_configs_of_their_methods(name: str) -> None:
    path = ROOT / "training/configs/recipes" / f"{name}.yaml"
    read_config(all_methods()[RECIPES[name]].config, path)
    assert f"`python -m training {RECIPES[name]}`" in path.read_text()


def test_no_recipe_is_left_out() -> None:
    assert {path.stem for path in (ROOT / "training/configs/recipes").iterdir()} == RECIPES.keys()


def test_several_devices_for_one_process_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--launcher", "one-gpu", "--devices", "0,1", "sft", "--config", "none.yaml"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --devices: expected one number, as one-gpu starts one process, got 0,1; ")


def test_an_unknown_launcher_or_device_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingRefused, match="--launcher: expected a file of `accelerate config`, or one of ddp, fsdp"
    ):
        find_launcher("ring")
    with pytest.raises(Invalid, match=r"TRAINING_LAUNCHER: expected ddp, fsdp, .*, got 'ring'"):
        load_settings({"TRAINING_LAUNCHER": "ring"})
    with pytest.raises(Invalid, match=r"TRAINING_DEVICES: expected numbers with commas between, .*, got 'cuda:0'"):
        load_settings({"TRAINING_DEVICES": "cuda:0"})
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"distributed_type": "NO", "num_processes": 1}))
    assert load_settings({"TRAINING_LAUNCHER": str(own), "TRAINING_DEVICES": "0, 1"}).TRAINING_DEVICES == "0,1"


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        ([(1, 5), (-9, 5)], 1),  # a process that lost its connection to one that was killed
        ([(-9, 36), (1, 5)], 1),  # one that the launcher had to kill
        ([(-15, 5), (2, 5)], 0),
        ([(1, 6), (-15, 6), (-11, 7)], 2),
    ],
)
def test_the_process_is_blamed_that_the_others_ended_because_of(ended: list[tuple[int, int]], cause: int) -> None:
    failures = {number: ProcessFailure(number, 1, code, error_file="") for number, (code, _) in enumerate(ended)}
    for number, (_, second) in enumerate(ended):
        failures[number].timestamp = second
    assert find_cause(failures) == cause
