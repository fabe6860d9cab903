"""Architectures of transformers under portable numerics: the splits of the work that change a sample's bits.

    repro portable -- python evidence/batches/architectures.py [NAME ...]

For each architecture and each attention, `same` or the splits with other bits. Models are small, with random weights, in
evaluation. It needs `transformers`; docs/reference/batches.md has the results.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import transformers as hf
from torch import Tensor

WORDS, SIZE = 60, 32
NUMBERS = {
    "vocab_size": WORDS,
    "hidden_size": SIZE,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = NUMBERS | {"num_key_value_heads": 2}
WIDE = GROUPED | {"head_dim": 8}
NARROW = WIDE | {"sliding_window": 6}
OLDER = {"vocab_size": WORDS, "n_positions": 128, "n_embd": SIZE, "n_layer": 2, "n_head": 4, "pad_token_id": 0} | {
    "bos_token_id": 1,
    "eos_token_id": 2,
}
IMAGES = {"hidden_size": SIZE, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}
BOTH = {
    "vocab_size": WORDS,
    "d_model": SIZE,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}

DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT2LMHeadModel": ("GPT2Config", OLDER),
    "GPTJForCausalLM": ("GPTJConfig", OLDER | {"rotary_dim": 4}),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", NUMBERS),
    "OPTForCausalLM": ("OPTConfig", NUMBERS | {"ffn_dim": 48, "word_embed_proj_dim": SIZE}),
    "BloomForCausalLM": ("BloomConfig", NUMBERS | {"n_layer": 2, "n_head": 4}),
    "FalconForCausalLM": ("FalconConfig", NUMBERS),
    "PhiForCausalLM": ("PhiConfig", NUMBERS),
    "Phi3ForCausalLM": ("Phi3Config", GROUPED),
    "LlamaForCausalLM": ("LlamaConfig", GROUPED),
    "Olmo2ForCausalLM": ("Olmo2Config", GROUPED),
    "Qwen2ForCausalLM": ("Qwen2Config", GROUPED),
    "Qwen3ForCausalLM": ("Qwen3Config", WIDE),
    "Qwen3MoeForCausalLM": ("Qwen3MoeConfig", WIDE | {"num_experts": 4, "num_experts_per_tok": 2}),
    "GemmaForCausalLM": ("GemmaConfig", WIDE),
    "Gemma2ForCausalLM": ("Gemma2Config", NARROW),
    "Gemma3ForCausalLM": ("Gemma3TextConfig", NARROW),
    "MistralForCausalLM": ("MistralConfig", GROUPED | {"sliding_window": 6}),
    "MixtralForCausalLM": ("MixtralConfig", GROUPED | {"num_local_experts": 4}),
    "GptOssForCausalLM": ("GptOssConfig", NARROW | {"num_local_experts": 4}),
    "MambaForCausalLM": ("MambaConfig", NUMBERS | {"state_size": 4}),
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertModel": ("BertConfig", NUMBERS),
    "RobertaModel": ("RobertaConfig", NUMBERS),
    "ElectraModel": ("ElectraConfig", NUMBERS | {"embedding_size": 16}),
    "DistilBertModel": (
        "DistilBertConfig",
        {"vocab_size": WORDS, "dim": SIZE, "hidden_dim": 48, "n_layers": 2} | {"n_heads": 4},
    ),
    "ModernBertModel": ("ModernBertConfig", NUMBERS | {"cls_token_id": 1, "sep_token_id": 2, "local_attention": 6}),
    "DebertaV2Model": ("DebertaV2Config", NUMBERS | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
}
PAIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "T5ForConditionalGeneration": (
        "T5Config",
        {"vocab_size": WORDS, "d_model": SIZE, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        | {"decoder_start_token_id": 0},
    ),
    "BartForConditionalGeneration": ("BartConfig", BOTH),
    "WhisperForConditionalGeneration": ("WhisperConfig", BOTH | {"num_mel_bins": 8, "max_source_positions": 32}),
}
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "ViTModel": ("ViTConfig", IMAGES),
    "Dinov2Model": ("Dinov2Config", IMAGES),
    "CLIPVisionModel": ("CLIPVisionConfig", IMAGES),
    "SwinModel": (
        "SwinConfig",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4},
    ),
    "ConvNextModel": ("ConvNextConfig", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}),
}
Results = Iterator[tuple[str, Tensor, Tensor]]
"""A split, what the whole gives, and what the parts give."""


def words(*shape: int) -> Tensor:
    return torch.randint(3, WORDS, shape, generator=torch.Generator().manual_seed(0))


def decoder(model: Any) -> Results:
    x, none, ones = words(16, 12), torch.zeros(16, 5, dtype=torch.long), torch.ones(16, 12, dtype=torch.long)
    whole = model(x, use_cache=False).logits
    for size in (1, 2, 5):
        yield f"batch of {size}", whole[:size], model(x[:size], use_cache=False).logits
    behind = model(torch.cat([x, none], 1), attention_mask=torch.cat([ones, none], 1), use_cache=False).logits
    yield "padding behind", whole, behind[:, :12]
    mask = torch.cat([none, ones], 1)
    places = (
        {}
        if "Mamba" in type(model).__name__ or "Bloom" in type(model).__name__
        else {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
    )
    before = model(torch.cat([none, x], 1), attention_mask=mask, use_cache=False, **places).logits
    yield "padding before", whole, before[:, 5:]
    for name, parts in ("cache", [(t, t + 1) for t in range(12)]), ("parts", [(0, 5), (5, 9), (9, 12)]):
        cache, results = None, []
        for first, last in parts:
            given = "cache_params" if "Mamba" in type(model).__name__ else "past_key_values"
            result = model(x[:, first:last], use_cache=True, **{given: cache})
            cache = result[given]
            results.append(result.logits)
        yield name, whole, torch.cat(results, 1)
    x, none, ones = x[:4], none[:4], ones[:4]
    how = {"max_new_tokens": 8, "do_sample": False, "return_dict_in_generate": True, "output_logits": True}
    alone = model.generate(x, attention_mask=ones, min_new_tokens=8, **how)
    written = torch.stack(alone.logits, 1)
    yield "generate", model(alone.sequences, use_cache=False).logits[:, 11:-1], written
    padded = model.generate(torch.cat([none, x], 1), attention_mask=mask[:4], min_new_tokens=8, **how)
    yield "generate, padding", written, torch.stack(padded.logits, 1)
    beams = [model.generate(x[:n], attention_mask=ones[:n], num_beams=3, output_scores=True, **how) for n in (1, 4)]
    yield "beams", beams[0].sequences_scores, beams[1].sequences_scores[:1]


def encoder(model: Any) -> Results:
    x, none, ones = words(16, 12), torch.zeros(16, 5, dtype=torch.long), torch.ones(16, 12, dtype=torch.long)
    whole = model(x, attention_mask=ones).last_hidden_state
    for size in (1, 2, 5):
        yield f"batch of {size}", whole[:size], model(x[:size], attention_mask=ones[:size]).last_hidden_state
    padded = model(torch.cat([x, none], 1), attention_mask=torch.cat([ones, none], 1)).last_hidden_state
    yield "padding behind", whole, padded[:, :12]


def pair(model: Any) -> Results:
    """An encoder and a decoder, of words or of sound."""
    sound = "Whisper" in type(model).__name__
    x = torch.randn(5, 8, 64, generator=torch.Generator().manual_seed(0)) if sound else words(5, 12)
    answer, name = words(5, 7), "input_features" if sound else "input_ids"
    whole = model(**{name: x}, decoder_input_ids=answer, use_cache=False).logits
    yield "batch of 1", whole[:1], model(**{name: x[:1]}, decoder_input_ids=answer[:1], use_cache=False).logits
    if not sound:
        none, ones = torch.zeros(5, 5, dtype=torch.long), torch.ones(5, 12, dtype=torch.long)
        mask = torch.cat([ones, none], 1)
        padded = model(torch.cat([x, none], 1), attention_mask=mask, decoder_input_ids=answer, use_cache=False).logits
        yield "padding behind", whole, padded
    encoded, cache, results = model.get_encoder()(x), None, []
    for t in range(7):
        step = answer[:, t : t + 1]
        result = model(encoder_outputs=encoded, decoder_input_ids=step, past_key_values=cache, use_cache=True)
        cache = result.past_key_values
        results.append(result.logits)
    yield "cache", whole, torch.cat(results, 1)


def pictures(model: Any) -> Results:
    x = torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    whole = model(pixel_values=x).last_hidden_state
    for size in (1, 2, 5):
        yield f"batch of {size}", whole[:size], model(pixel_values=x[:size]).last_hidden_state


KINDS: list[tuple[Callable[[Any], Results], dict[str, tuple[str, dict[str, Any]]]]] = [
    (decoder, DECODERS),
    (encoder, ENCODERS),
    (pair, PAIRS),
    (pictures, PICTURES),
]


def main() -> int:
    hf.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    known = {name: (splits, *made) for splits, table in KINDS for name, made in table.items()}
    for name in sys.argv[1:] or known:
        splits, config, numbers = known[name]
        for attention in ("sdpa", "eager"):
            torch.manual_seed(0)
            model = getattr(hf, name)(getattr(hf, config)(**numbers)).eval()
            try:
                model.set_attn_implementation(attention)
            except ValueError:
                print(f"{name:34} {attention:6} has none", flush=True)
                continue
            other = [split for split, whole, parts in splits(model) if not torch.equal(whole, parts)]
            print(f"{name:34} {attention:6} {', '.join(other) or 'same'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
