"""A stand-in for LightGBM, which no environment of the tests has."""

__version__ = "4.7"


class Dataset:
    def __init__(self, data, label=None):
        self.data, self.label = data, label

    def get_label(self):
        return self.label

    def get_weight(self):
        return None


class Booster:
    def __init__(self, train_set):
        self.train_set, self.trees = train_set, []

    def update(self, train_set=None, fobj=None):
        self.trees.append(float(self.train_set.data.mean()))
        return False

    def num_trees(self):
        return len(self.trees)

    def model_to_string(self, num_iteration):
        return repr(self.trees)
