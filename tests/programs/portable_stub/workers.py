"""A program whose workers compute, too; its argument is how multiprocessing starts them."""

import multiprocessing
import sys

import torch


def work() -> None:
    for _ in range(10):
        torch.computed("sum")
    torch.computed("exp")


if __name__ == "__main__":
    torch.computed("mm")
    process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    process.start()
    process.join()
    print(process.exitcode)
