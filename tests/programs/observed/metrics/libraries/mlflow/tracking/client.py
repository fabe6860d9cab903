"""A stand-in for MLflow's client."""


class MlflowClient:
    def log_metric(self, run_id, key, value, timestamp=None, step=None):
        print("mlflow", key, value, step)

    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        print("mlflow", [metric.key for metric in metrics])
