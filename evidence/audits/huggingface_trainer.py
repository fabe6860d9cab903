"""A small GPT-2 by the Trainer of `transformers`: a folder for each checkpoint."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

STEPS, EVERY = 24, 6


class Text(torch.utils.data.Dataset):
    """Rows of random tokens."""

    def __init__(self) -> None:
        self.rows = torch.randint(64, (64, 16), generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    set_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    )
    arguments = TrainingArguments(
        output_dir=options.out,
        max_steps=STEPS,
        save_steps=EVERY,
        per_device_train_batch_size=8,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Text())
    trainer.train(resume_from_checkpoint=options.resume or None)
    trainer.save_model(f"{options.out}/model")


if __name__ == "__main__":
    main()
