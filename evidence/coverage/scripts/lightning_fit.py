"""An autoencoder, trained by Lightning: python lightning_fit.py FOLDER EPOCHS."""

import sys
from pathlib import Path

import lightning
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(16, 12), nn.BatchNorm1d(12), nn.GELU(), nn.Dropout(0.1), nn.Linear(12, 4)
        )
        self.decoder = nn.Sequential(nn.Linear(4, 12), nn.SiLU(), nn.Linear(12, 16))

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        loss = F.mse_loss(self.decoder(self.encoder(batch[0])), batch[0])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        self.log("loss", F.mse_loss(self.decoder(self.encoder(batch[0])), batch[0]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=10)]


def main() -> None:
    folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
    lightning.seed_everything(1, workers=True, verbose=False)
    model, data = Autoencoder(), torch.rand(24, 16, generator=torch.Generator().manual_seed(0))
    training = DataLoader(TensorDataset(data[:16]), 4, num_workers=1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        gradient_clip_val=1.0,
        default_root_dir=folder,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    last = folder / "last.ckpt"
    if last.exists():
        torch.set_rng_state(torch.load(folder / "generator.pt", weights_only=True))
    trainer.fit(model, training, DataLoader(TensorDataset(data[16:]), 8), ckpt_path=last if last.exists() else None)
    trainer.save_checkpoint(last)
    torch.save(torch.get_rng_state(), folder / "generator.pt")
    save_file(model.state_dict(), folder / "weights.safetensors")


main()
