"""How the engines of local models are started, and what is read of their complaints."""

import shutil
from pathlib import Path

import pytest

from app.core.errors import Conflict
from app.players.local import engines


def test_weights_for_which_there_is_no_memory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Conflict) as large:
        engines.check_memory(tmp_path, 10**15)
    assert large.value.message.startswith(f"{tmp_path}: expected 4000000.0 GB of free memory for its weights, got ")
    engines.check_memory(tmp_path, 1000)
    engines.check_memory(tmp_path, None)


def test_vllm_is_started_with_the_name_and_the_numbers_of_the_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "vllm"
    shutil.copy("/bin/true", program)
    monkeypatch.setenv("PATH", str(tmp_path))
    engines.check_startable("vllm")
    model = engines.model_name("vllm", "mine", Path("/data/qwen"))
    command = engines.command(
        "vllm", Path("/data/qwen"), model, ("127.0.0.1", 8001), "auto", "bfloat16", ("--max-model-len", "8192")
    )
    assert command == [
        str(program), "serve", "/data/qwen", "--served-model-name", "mine", "--host", "127.0.0.1", "--port", "8001",
        "--dtype", "bfloat16", "--max-model-len", "8192",
    ]  # fmt: skip
    with_adapters = engines.command("vllm", Path("q"), "q", ("127.0.0.1", 1), "auto", "auto", ("--max-loras", "4"), 20)
    at = with_adapters.index("--enable-lora")
    assert with_adapters[at : at + 5] == ["--enable-lora", "--max-lora-rank", "32", "--max-loras", "2"]
    assert with_adapters[-2:] == ["--max-loras", "4"]  # the last one counts


def test_the_line_that_says_that_memory_ran_out_is_found() -> None:
    lines = ["loading", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "goodbye"]
    assert engines.memory_complaint(lines) == lines[1]
    assert engines.memory_complaint(["loading", "goodbye"]) is None
