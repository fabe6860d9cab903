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
    multiprocessing.set_start_method(sys.argv[1])
    process = multiprocessing.Process(target=work)
    process.start()
    process.join()
    print(process.exitcode)
