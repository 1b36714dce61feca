"""A folder in Hugging Face layout as a model of kind ``lm``: its weights and tokenizer through transformers, offline.

Not a family of ours (no ``ARCH``): `tinyllm.eval.zoo.load_model` comes here for a config with ``model_type``. The
tokenizer is used as saved: no special tokens added by it, no regex rewritten. Needs the ``hf`` extra.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tinyllm.errors import CheckpointError

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "tokenizer.model")


class HFTokenizer:
    """A transformers tokenizer with the five names that scoring uses; `encode` adds no special token."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.vocab_size = len(tokenizer)
        self.bos_id: int | None = tokenizer.bos_token_id
        self.eos_id: int | None = tokenizer.eos_token_id

    def encode(self, text: str) -> list[int]:
        """The text's token ids, without BOS or EOS."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of token ids, special tokens shown."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text


class HFCausalLM(torch.nn.Module):
    """A transformers causal language model: ids int64 ``[1, T]`` in, logits ``[1, T, V]`` out.

    Attributes
    ----------
    vocab_size, ctx_len
        From its config; ctx_len is None where the config has no limit.
    tokenizer
        The folder's tokenizer, or None when it has none.
    """

    def __init__(self, model: Any, tokenizer: HFTokenizer | None) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.vocab_size = int(model.config.vocab_size)
        self.ctx_len: int | None = getattr(model.config, "max_position_embeddings", None)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits in the model's dtype."""
        logits: torch.Tensor = self.model(ids, use_cache=False).logits
        return logits


def load_hf(path: Path) -> HFCausalLM:
    """Load a causal language model and its tokenizer from a local folder; nothing is downloaded, no code of it is run.

    Raises
    ------
    CheckpointError
        When transformers is missing, or cannot load the folder from safetensors; the message has its reason.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        fix = "a Hugging Face folder needs transformers; install tinyllm-eval[hf]"
        raise CheckpointError(path, fix) from error
    offline: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    had_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            str(path), use_safetensors=True, dtype=torch.float32, output_loading_info=True, **offline
        )
        tokenizer = None
        if any((path / name).is_file() for name in TOKENIZER_FILES):
            tokenizer = HFTokenizer(AutoTokenizer.from_pretrained(str(path), **offline))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(path, f"transformers cannot load it: {error}") from error
    finally:
        if had_bars:
            logging.enable_progress_bar()
    for fault in ("missing_keys", "mismatched_keys", "error_msgs"):  # transformers would fill these at random
        if info.get(fault):
            msg = f"every weight of the model must be in the folder, got {fault} {sorted(map(str, info[fault]))[:5]}"
            raise CheckpointError(path, msg)
    return HFCausalLM(model.eval(), tokenizer)
