"""Generative and other models with a training loop of their own."""

import copy
import random
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import clip_grad_value_, parametrizations, spectral_norm, weight_norm

from evidence.coverage.pytorch_training import Training
from evidence.coverage.registry import STEPS, program
from evidence.coverage.sequences import training


@program("others", "u-net")
def unet() -> Training:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
            self.batch_norm, self.instance_norm = nn.BatchNorm2d(8), nn.InstanceNorm2d(16, affine=True)
            self.up, self.last = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            wide = F.relu(self.batch_norm(self.first(x)))
            deep = F.leaky_relu(self.instance_norm(self.second(F.max_pool2d(wide, 2))))
            beside = F.interpolate(F.avg_pool2d(wide, 2), scale_factor=2, mode="bilinear", align_corners=False)
            return self.last(torch.cat([self.up(deep), beside], 1))

    x, mask = torch.rand(2, 3, 16, 16), (torch.rand(2, 1, 16, 16) > 0.5).float()

    def loss(model: nn.Module, _: Any) -> Tensor:
        outputs = model(x)
        shares = outputs.sigmoid()
        dice = 1 - (2 * (shares * mask).sum() + 1) / (shares.sum() + mask.sum() + 1)
        return F.binary_cross_entropy_with_logits(outputs, mask) + dice

    return training(Model(), loss)


@program("others", "gan with spectral norm and gradient penalty")
def gan() -> dict[str, Tensor]:
    generator = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh())
    first, last = spectral_norm(nn.Linear(12, 16)), parametrizations.spectral_norm(nn.Linear(16, 1))
    critic = nn.Sequential(first, nn.LeakyReLU(0.2), last)
    steps = [torch.optim.Adam(model.parameters(), 2e-4, betas=(0.5, 0.999)) for model in (generator, critic)]
    entropy, real = nn.BCEWithLogitsLoss(), torch.rand(8, 12)
    ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
    for _ in range(STEPS):
        made = generator(torch.randn(8, 8))
        share = torch.rand(8, 1)
        between = (share * real + (1 - share) * made.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = 10 * ((slope.norm(2, 1) - 1) ** 2).mean()
        steps[1].zero_grad()
        (entropy(critic(real), ones) + entropy(critic(made.detach()), zeros) + penalty).backward()
        steps[1].step()
        steps[0].zero_grad()
        entropy(critic(made), ones).backward()
        steps[0].step()
    return generator.state_dict() | {f"critic.{name}": each for name, each in critic.state_dict().items()}


@program("others", "vae")
def vae() -> Training:
    encoder, decoder = nn.Sequential(nn.Linear(20, 16), nn.ELU(), nn.Linear(16, 8)), nn.Linear(4, 20)
    x = torch.rand(8, 20)

    def loss(model: Any, _: Any) -> Tensor:
        mean, variance = model[0](x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * variance)
        rebuilt = F.binary_cross_entropy(torch.sigmoid(model[1](code)), x, reduction="sum")
        return rebuilt - 0.5 * torch.sum(1 + variance - mean.pow(2) - variance.exp())

    return training(nn.ModuleList([encoder, decoder]), loss, "Adam")


@program("others", "distributions")
def distributions() -> Training:
    x = torch.rand(8, 6)

    def loss(model: nn.Module, _: Any) -> Tensor:
        mean, width = model(x).chunk(2, 1)
        normal, choice = Normal(mean, F.softplus(width) + 1e-3), Categorical(logits=mean)
        apart = kl_divergence(normal, Normal(torch.zeros(2), torch.ones(2))).sum()
        likely = normal.log_prob(normal.rsample().detach()).mean() + choice.log_prob(choice.sample()).mean()
        return apart - likely - 0.1 * choice.entropy().mean()

    return training(nn.Linear(6, 4), loss)


@program("others", "dqn")
def dqn() -> dict[str, Tensor]:
    network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    target = copy.deepcopy(network)
    steps = torch.optim.RMSprop(network.parameters(), 1e-3)
    memory: list[tuple[Tensor, int, float, Tensor]] = []
    state = torch.zeros(4)
    for _ in range(40):
        with torch.no_grad():
            action = random.randrange(2) if random.random() < 0.3 else int(network(state).argmax())
        following = state * 0.9 + torch.randn(4) * 0.1 + action * 0.1
        memory.append((state, action, float(following.sum()), following))
        state = following
        if len(memory) < 16:
            continue
        states, actions, rewards, next_states = zip(*random.sample(memory, 8), strict=True)
        with torch.no_grad():
            wanted = torch.tensor(rewards) + 0.99 * target(torch.stack(next_states)).max(1).values
        result = network(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
        steps.zero_grad()
        F.smooth_l1_loss(result, wanted).backward()
        clip_grad_value_(network.parameters(), 1.0)
        steps.step()
        for old, new in zip(target.parameters(), network.parameters(), strict=True):
            old.data.mul_(0.99).add_(new.data, alpha=0.01)
    return network.state_dict() | {f"target.{name}": each for name, each in target.state_dict().items()}


@program("others", "diffusion")
def diffusion() -> dict[str, Tensor]:
    import diffusers

    model = diffusers.UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
    )
    schedule, x = diffusers.DDPMScheduler(100), torch.rand(2, 1, 8, 8)

    def loss(model: nn.Module, _: Any) -> Tensor:
        noise, times = torch.randn_like(x), torch.randint(100, (2,))
        return F.mse_loss(model(schedule.add_noise(x, noise, times), times).sample, noise)

    trained = training(model, loss).run()
    sample = torch.randn(1, 1, 8, 8)
    schedule.set_timesteps(3)
    with torch.no_grad():
        for time in schedule.timesteps:
            sample = schedule.step(model(sample, time).sample, time, sample).prev_sample
    return {**trained, "sample": sample}


@program("others", "graph attention")
def graph() -> Training:
    model = nn.ModuleList([nn.Linear(6, 8), nn.Linear(16, 1), nn.Linear(8, 3)])
    x, classes = torch.rand(10, 6), torch.randint(3, (10,))
    start, end = torch.randint(10, (2, 30))

    def loss(model: Any, _: Any) -> Tensor:
        h = F.relu(model[0](x))
        power = model[1](torch.cat([h[start], h[end]], 1)).squeeze(1).exp()
        share = power / (torch.zeros(10).scatter_add(0, end, power)[end] + 1e-6)
        total = torch.zeros(10, 8).index_add(0, end, h[start] * share[:, None])
        where = end[:, None].expand(-1, 8)
        for way in ("amax", "mean"):
            total = total + torch.zeros(10, 8).scatter_reduce(0, where, h[start], way)
        return F.cross_entropy(model[2](total), classes)

    return training(model, loss)


@program("others", "contrastive")
def contrastive() -> Training:
    model, scale = nn.ModuleList([nn.Linear(8, 6)]), nn.Parameter(torch.tensor(2.6))
    model.register_parameter("scale", scale)
    x, other, same = torch.rand(6, 8), torch.rand(6, 8), torch.arange(6)

    def loss(model: Any, _: Any) -> Tensor:
        a, b = F.normalize(model[0](x)), F.normalize(model[0](other))
        scores = a @ b.T * scale.exp()
        apart = F.triplet_margin_loss(a, b, b.roll(1, 0)) + F.cosine_embedding_loss(a, b, torch.ones(6))
        return F.cross_entropy(scores, same) + F.cross_entropy(scores.T, same) + apart + torch.cdist(a, b).mean()

    return training(model, loss)


@program("others", "weight norm")
def weights() -> Training:
    last = parametrizations.weight_norm(nn.Linear(6, 3))
    model, x = nn.Sequential(weight_norm(nn.Conv1d(2, 4, 3)), nn.ReLU(), last), torch.rand(2, 2, 8)
    return training(model, lambda model, _: model(x).square().mean(), "SGD")
