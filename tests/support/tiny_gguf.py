"""Writes a random language model of some hundred kilobytes, that a real llama.cpp server loads and speaks with."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, FEED, HEADS, LAYERS, CONTEXT = 64, 128, 4, 2, 2_048
SPECIAL = ("<unk>", "<s>", "</s>")
WORDS = tuple(f"\u2581{word}" for word in ("position", "A", "B", "yes", "no", "the", "a", "of", "and", "is"))
# Byte tokens make every text a prompt.
TOKENS = (*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS)


def write_model(path: Path, seed: int = 1) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer)
    random = np.random.default_rng(seed)
    for name, shape in _shapes():
        values = random.normal(0, 0.3, shape) if len(shape) == 2 else np.ones(shape)
        if name == "output.weight":
            # Never the likeliest then: an end at once, and halves of signs, which a server holds back in a stream.
            values[: len(SPECIAL)] = 0
            values[[len(SPECIAL) + byte for byte in range(256) if not 0x20 <= byte < 0x7F]] = 0
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    kinds = gguf.TokenType
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] + [kinds.BYTE] * 256 + [kinds.NORMAL] * len(WORDS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in TOKENS])
    writer.add_token_scores([0.0] * 259 + [-float(rank) for rank in range(len(WORDS))])
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}")


def _shapes() -> list[tuple[str, tuple[int, ...]]]:
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (len(TOKENS), WIDTH)),
        ("output_norm.weight", (WIDTH,)),
        ("output.weight", (len(TOKENS), WIDTH)),
    ]
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        shapes += [(f"{block}.attn_norm.weight", (WIDTH,)), (f"{block}.ffn_norm.weight", (WIDTH,))]
        shapes += [(f"{block}.attn_{part}.weight", (WIDTH, WIDTH)) for part in ("q", "k", "v", "output")]
        shapes += [(f"{block}.ffn_{part}.weight", (FEED, WIDTH)) for part in ("gate", "up")]
        shapes.append((f"{block}.ffn_down.weight", (WIDTH, FEED)))
    return shapes
