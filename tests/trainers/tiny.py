"""A tiny random language model with a local tokenizer, and a task whose outcome depends on what it wrote."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(29))]


def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def model() -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def evaluate(prompt, completion: str, **columns) -> dict:
    """Passes where the number of different words is even; the patch is what was written, so quality differs too."""
    words = completion.split()
    lines = "".join(f"+{word}\n" for word in words)
    head = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,{len(words) + 1} @@\n x = 1\n"
    if columns.get("spoil") and len(words) % 5 == 0:
        return {"outcome": "infra_invalid"}
    return {"outcome": "passed" if len({*words}) % 2 == 0 else "failed", "patch": head + lines if words else None}
