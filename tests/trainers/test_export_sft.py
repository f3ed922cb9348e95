"""What the server exports loads as it is into TRL's SFTTrainer, tool calls included, and one step of it is taken."""

import json

import pytest

pytest.importorskip("trl", reason="TRL is not installed here: make test-trainers runs this")

import torch
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

from tests.trainers.conftest import ROOT, SERVER_PYTHON

TEMPLATE = (  # what is learned begins and ends with a word: spans of spaces alone are no token here
    "{%- if tools %}TOOLS {{ tools | tojson }} {% endif -%}"
    "{%- for m in messages -%}{{ m.role }} : "
    "{%- if m.role == 'assistant' %} {% generation %}SAY {{ m.content or '' }}"
    "{%- for call in m.tool_calls or [] %} CALL {{ call.function.name }} {{ call.function.arguments }}{% endfor %}"
    " <eos>{% endgeneration %} {% else %} {{ m.content or '' }} {% endif -%}{%- endfor -%}"
)
MAKE = """
from tests.environment import *
import django; django.setup()
from django.core.management import call_command
from django.conf import settings
call_command("migrate", verbosity=0)
from tests.grading.export.rooms import approve, correct, graded
from tests.model_scripts import good, playing
from tests.model_server import ModelServer
with ModelServer("good") as server:
    settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:scripted", server.url
    settings.GAGAR_GRADER_KEY = "secret"
    names = []
    for grader in ("single_pass", "agentic"):
        look = [("read_events", {"candidate": "A"}), ("search_events", {"words": ["41"], "candidate": "all"})]
        server.play(playing(look) if grader == "agentic" else good)
        group = graded(grader)
        correct(group, precision=2) if grader == "agentic" else approve(group)
        names.append(group.run.public_id)
    call_command("export", "sft", FILE, runs=names)
    call_command("export", "preferences", PAIRS, runs=names)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An export of two graded groups, made by the server's own code in the server's environment."""
    import os
    import subprocess

    if not SERVER_PYTHON.exists():
        pytest.skip("the server's environment is missing: make test-trainers makes it")
    folder = tmp_path_factory.mktemp("export")
    sft, pairs = folder / "grader.jsonl", folder / "pairs.parquet"
    env = os.environ | {"GAGAR_DATA_DIR": str(folder / "data"), "DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
    env |= {"PYTHONPATH": str(ROOT), "GAGAR_LOG_LEVEL": "ERROR"}
    script = MAKE.replace("FILE", repr(str(sft))).replace("PAIRS", repr(str(pairs)))
    done = subprocess.run([SERVER_PYTHON, "-c", script], cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return sft, pairs


def tokenizer_for(text: str) -> PreTrainedTokenizerFast:
    words = ["<pad>", "<eos>", "<unk>", *sorted(set(text.split()))]
    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    found.chat_template = TEMPLATE
    return found


def tiny(tokenizer) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=32_768, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def test_an_exported_file_takes_a_training_step(files, tmp_path):
    rows = load_dataset("json", data_files=str(files[0]), split="train").remove_columns("provenance")
    assert len(rows) == 2
    assert {message["role"] for row in rows for message in row["messages"]} >= {"system", "user", "assistant", "tool"}
    tokenizer = tokenizer_for(files[0].read_text().replace("\\n", " "))
    model = tiny(tokenizer)
    before = model.lm_head.weight.detach().clone()
    config = SFTConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=2, assistant_only_loss=True,
        max_length=None, report_to=[], use_cpu=True, learning_rate=1e-2,
    )  # fmt: skip
    trainer = SFTTrainer(model, args=config, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    assert torch.isfinite(torch.tensor(trainer.state.log_history[-1]["train_loss"]))
    assert not torch.equal(before, model.lm_head.weight)


def test_what_is_learned_is_the_verdict_and_what_was_called_and_nothing_of_the_material(files):
    rows = [json.loads(line) for line in files[0].read_text().splitlines()]
    agentic = next(row for row in rows if any(m["role"] == "tool" for m in row["messages"]))
    loaded = load_dataset("json", data_files=str(files[0]), split="train")
    same = next(row for row in loaded if any(m["role"] == "tool" for m in row["messages"]))
    tokenizer = tokenizer_for(files[0].read_text().replace("\\n", " "))
    shown = tokenizer.apply_chat_template(
        same["messages"],
        tools=json.loads(same["tools"]),
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    learned = [id for id, kept in zip(shown["input_ids"], shown["assistant_masks"], strict=True) if kept]
    assert 0 < len(learned) < len(shown["input_ids"])
    said = agentic["messages"][-1]["tool_calls"][0]["function"]
    assert said["name"] == "submit" and json.loads(said["arguments"])["candidates"]
    assert same["messages"][-1]["tool_calls"][0]["function"] == said  # the table of rows changed nothing in it
    assert "submit" in {tool["function"]["name"] for tool in json.loads(same["tools"])}


def test_pairs_load_with_their_ties(files):
    pairs = load_dataset("parquet", data_files=str(files[1]), split="train")
    assert {"prompt", "chosen", "rejected", "is_tie"} <= set(pairs.column_names)
    assert 0 < len(pairs.filter(lambda row: not row["is_tie"])) < len(pairs) or set(pairs["is_tie"]) == {False}
