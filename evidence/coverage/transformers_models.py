"""Models of transformers, of small random configurations, with the loss that they compute themselves."""

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from evidence.coverage.pytorch_training import OPTIMIZERS, Training
from evidence.coverage.registry import STEPS, program

WORDS = 64
NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
TEXT = NARROW | {"vocab_size": WORDS}
GROUPED = TEXT | {"num_key_value_heads": 1}
SEQ2SEQ = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": WORDS,
}
EXPERTS = {"num_experts_per_tok": 2, "output_router_logits": True}
PIXELS = {"image_size": 32, "patch_size": 8}
SPEECH = NARROW | {
    "vocab_size": 16,
    "conv_dim": (16, 16),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_length": 2,
    "mask_time_prob": 0.1,
}


def text() -> dict[str, Any]:
    """Two rows of tokens, the second one padded."""
    tokens = torch.randint(3, WORDS, (2, 12))
    seen = torch.ones_like(tokens)
    seen[1, 9:] = 0
    return {"input_ids": tokens, "attention_mask": seen, "labels": tokens.masked_fill(seen == 0, -100)}


def tokens_alone() -> dict[str, Any]:
    tokens = torch.randint(3, WORDS, (2, 12))
    return {"input_ids": tokens, "labels": tokens}


def pictures() -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}


def captions() -> dict[str, Any]:
    return {
        "input_ids": torch.randint(3, WORDS, (2, 12)),
        "pixel_values": torch.randn(2, 3, 32, 32),
        "return_loss": True,
    }


def sound() -> dict[str, Any]:
    return {"input_values": torch.randn(2, 400), "labels": torch.randint(1, 15, (2, 5))}


def spectra() -> dict[str, Any]:
    return {"input_features": torch.randn(2, 8, 64), "labels": torch.randint(3, WORDS, (2, 8))}


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, Any]], str]] = {
    "gpt2": (
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=WORDS, n_positions=32)),
        text,
        "AdamW, fused",
    ),
    "llama": (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)), text, "AdamW, foreach"),
    "llama, eager attention": (
        lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED, attn_implementation="eager", attention_dropout=0.1)),
        text,
        "AdamW",
    ),
    "qwen3": (lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**GROUPED, head_dim=16)), text, "AdamW"),
    "mixtral": (
        lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**GROUPED, **EXPERTS, num_local_experts=4)),
        text,
        "AdamW",
    ),
    "deepseek_v3": (
        lambda: hf.DeepseekV3ForCausalLM(
            hf.DeepseekV3Config(
                **TEXT,
                num_key_value_heads=2,
                moe_intermediate_size=32,
                n_routed_experts=4,
                n_group=1,
                topk_group=1,
                num_experts_per_tok=2,
                q_lora_rank=16,
                kv_lora_rank=16,
                qk_nope_head_dim=8,
                qk_rope_head_dim=8,
                v_head_dim=16,
                first_k_dense_replace=1,
            )
        ),
        text,
        "AdamW",
    ),
    "gemma2": (lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**GROUPED, head_dim=16)), text, "Adafactor"),
    "phi3": (lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**GROUPED, pad_token_id=0, resid_pdrop=0.1)), text, "AdamW"),
    "gpt_neox": (lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**TEXT, hidden_dropout=0.1)), text, "AdamW"),
    "bloom": (
        lambda: hf.BloomForCausalLM(
            hf.BloomConfig(n_layer=2, hidden_size=32, n_head=2, vocab_size=WORDS, hidden_dropout=0.1)
        ),
        text,
        "AdamW",
    ),
    "bert": (lambda: hf.BertForMaskedLM(hf.BertConfig(**TEXT)), text, "AdamW, fused"),
    "roberta": (lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**TEXT)), text, "NAdam"),
    "deberta_v2": (
        lambda: hf.DebertaV2ForMaskedLM(
            hf.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8)
        ),
        text,
        "AdamW",
    ),
    "albert": (lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(**TEXT, embedding_size=16)), text, "AdamW"),
    "longformer": (
        lambda: hf.LongformerForMaskedLM(hf.LongformerConfig(**TEXT, attention_window=8, max_position_embeddings=64)),
        text,
        "AdamW",
    ),
    "t5": (
        lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(
                num_layers=2,
                d_model=32,
                num_heads=2,
                d_kv=16,
                d_ff=64,
                vocab_size=WORDS,
                decoder_start_token_id=0,
                pad_token_id=0,
            )
        ),
        tokens_alone,
        "Adafactor",
    ),
    "bart": (
        lambda: hf.BartForConditionalGeneration(hf.BartConfig(**SEQ2SEQ, max_position_embeddings=64)),
        tokens_alone,
        "AdamW",
    ),
    "vit": (
        lambda: hf.ViTForImageClassification(hf.ViTConfig(**NARROW, **PIXELS, hidden_dropout_prob=0.1)),
        pictures,
        "AdamW",
    ),
    "swin": (
        lambda: hf.SwinForImageClassification(
            hf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
        ),
        pictures,
        "AdamW",
    ),
    "clip": (
        lambda: hf.CLIPModel(
            hf.CLIPConfig(
                text_config=TEXT | {"max_position_embeddings": 16, "eos_token_id": 2},
                vision_config=NARROW | PIXELS,
                projection_dim=16,
            )
        ),
        captions,
        "AdamW",
    ),
    "whisper": (
        lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                **SEQ2SEQ,
                num_mel_bins=8,
                max_source_positions=32,
                max_target_positions=32,
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=2,
                decoder_start_token_id=1,
                dropout=0.1,
            )
        ),
        spectra,
        "AdamW",
    ),
    "wav2vec2": (lambda: hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**SPEECH)), sound, "AdamW"),
    "mamba": (
        lambda: hf.MambaForCausalLM(hf.MambaConfig(num_hidden_layers=2, hidden_size=32, vocab_size=WORDS)),
        tokens_alone,
        "AdamW",
    ),
    "mamba2": (
        lambda: hf.Mamba2ForCausalLM(
            hf.Mamba2Config(
                num_hidden_layers=1,
                hidden_size=32,
                vocab_size=WORDS,
                num_heads=4,
                head_dim=16,
                state_size=8,
                n_groups=1,
                chunk_size=4,
            )
        ),
        tokens_alone,
        "AdamW",
    ),
}
"""Model, batch, optimizer."""


def _model(name: str) -> None:
    made, batch, optimizer = MODELS[name]

    @program("transformers", name)
    def build() -> Training:
        model = made()
        batches = [batch() for _ in range(2)]
        steps = OPTIMIZERS[optimizer](list(model.parameters()))
        return Training(
            model,
            lambda number: batches[number % 2],
            steps,
            loss=lambda model, given: model(**given).loss,
            clip=1.0,
            scheduler=CosineAnnealingLR(steps, STEPS),
        )


for _name in MODELS:
    _model(_name)
