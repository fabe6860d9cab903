"""Rounds of boosting, with stand-ins for XGBoost and LightGBM."""

import lightgbm
import numpy
import xgboost


def train(_: str = "") -> None:
    x, y = numpy.arange(12.0).reshape(4, 3), numpy.arange(4)
    first, resumed = xgboost.Booster(), xgboost.Booster([0.5])
    for iteration in range(2):
        first.update(xgboost.DMatrix(x, y), iteration)
    resumed.boost(xgboost.QuantileDMatrix(x + 1, label=y), 1)
    light = lightgbm.Booster(lightgbm.Dataset(data=x))
    light.update()
    copied = xgboost.Booster(first.trees)
    copied.update(xgboost.DMatrix(x, y), 2)
    print(copied.trees, first.trees, resumed.trees, light.trees)


SCENARIOS = {"rounds": train}

if __name__ == "__main__":
    train()
