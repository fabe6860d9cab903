"""A classifier of texts, fine-tuned by the Trainer: python hugging_face.py FOLDER EPOCHS."""

import sys

import torch
from safetensors.torch import save_file
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint


class Texts(Dataset):
    """Rows of tokens of several lengths; the class is whether the first one is even."""

    def __init__(self, rows: int) -> None:
        generator = torch.Generator().manual_seed(rows)
        lengths = torch.randint(4, 12, (rows,), generator=generator).tolist()
        self.rows = [torch.randint(3, 60, (length,), generator=generator) for length in lengths]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        row = self.rows[index]
        return {"input_ids": row.tolist(), "labels": int(row[0]) % 2}


def padded(rows: list[dict]) -> dict[str, torch.Tensor]:
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def main() -> None:
    folder, epochs = sys.argv[1], int(sys.argv[2])
    set_seed(1)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForSequenceClassification(BertConfig(vocab_size=60, **small))
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        warmup_steps=2,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_steps=1,
        dataloader_num_workers=1,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model, arguments, data_collator=padded, train_dataset=Texts(16), eval_dataset=Texts(8))
    if epochs == 1:
        trainer.add_callback(after_one_epoch())
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder))
    save_file(model.state_dict(), f"{folder}/weights.safetensors")


def after_one_epoch():
    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_epoch_end(self, args, state, control, **_):
            control.should_training_stop = True

    return Stop()


main()
