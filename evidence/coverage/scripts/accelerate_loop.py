"""A small language model, trained by a loop with accelerate: python accelerate_loop.py FOLDER EPOCHS."""

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from safetensors.torch import save_file
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup


def main() -> None:
    folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
    set_seed(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64, n_positions=16))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 1, 8)
    tokens = torch.randint(64, (16, 12), generator=torch.Generator().manual_seed(0))
    training = DataLoader(TensorDataset(tokens[:12]), 2, shuffle=True, num_workers=1)
    model, optimizer, training, schedule = accelerator.prepare(model, optimizer, training, schedule)
    start = 0
    if (folder / "state").exists():
        accelerator.load_state(folder / "state")
        start = 1
    for _ in range(start, epochs):
        model.train()
        for (batch,) in training:
            with accelerator.accumulate(model):
                loss = model(input_ids=batch, labels=batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            accelerator.print(float(model(input_ids=tokens[12:], labels=tokens[12:]).loss), file=sys.stderr)
    accelerator.save_state(folder / "state")
    weights = accelerator.unwrap_model(model).state_dict()
    weights.pop("lm_head.weight", None)  # the embedding itself
    save_file(weights, folder / "weights.safetensors")


main()
