"""Rounds of boosting, with stand-ins for XGBoost and LightGBM."""

import lightgbm
import numpy
import xgboost

X, y = numpy.arange(12.0).reshape(4, 3), numpy.arange(4)
first, resumed = xgboost.Booster(), xgboost.Booster([0.5])
for iteration in range(2):
    first.update(xgboost.DMatrix(X, y), iteration)
resumed.boost(xgboost.QuantileDMatrix(X + 1, label=y), 1)
light = lightgbm.Booster(lightgbm.Dataset(data=X))
light.update()
copied = xgboost.Booster(first.trees)
copied.update(xgboost.DMatrix(X, y), 2)
print(copied.trees, first.trees, resumed.trees, light.trees)
