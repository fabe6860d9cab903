"""BERT of KerasHub with a classifier.

python bert_keras.py DATA.npz
"""

import argparse

import keras
import keras_hub
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)

NAMES = {
    "token_embedding": "bert.embeddings.word_embeddings",
    "position_embedding": "bert.embeddings.position_embeddings",
    "segment_embedding": "bert.embeddings.token_type_embeddings",
    "embeddings_layer_norm": "bert.embeddings.LayerNorm",
    "self_attention_layer/query": "attention.self.query",
    "self_attention_layer/key": "attention.self.key",
    "self_attention_layer/value": "attention.self.value",
    "self_attention_layer/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "feedforward_intermediate_dense": "intermediate.dense",
    "feedforward_output_dense": "output.dense",
    "feedforward_layer_norm": "output.LayerNorm",
    "pooled_dense": "bert.pooler.dense",
    "classifier": "classifier",
}
"""KerasHub's names of layers, and those of transformers."""


def load(network: keras.Model) -> None:
    """Takes the weights of a checkpoint of transformers."""
    for weight in network.weights:
        layer, _, last = weight.path.rpartition("/")
        place = ""
        if layer.startswith("transformer_layer_"):
            first, _, layer = layer.partition("/")
            place = f"bert.encoder.layer.{first.rpartition('_')[2]}."
        array = data[f"{place}{NAMES[layer]}.{'bias' if last in ('bias', 'beta') else 'weight'}"]
        weight.assign((array.T if last == "kernel" else array).reshape(weight.shape))


backbone = keras_hub.models.BertBackbone(
    vocabulary_size=64,
    num_layers=2,
    num_heads=4,
    hidden_dim=32,
    intermediate_dim=64,
    dropout=0.0,
    max_sequence_length=12,
)
logits = keras.layers.Dense(3, name="classifier")(backbone.output["pooled_output"])
network = keras.Model(backbone.input, logits)
load(network)
network.compile(
    keras.optimizers.SGD(0.1, momentum=0.9),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
inputs = {"token_ids": data["tokens"], "padding_mask": data["mask"], "segment_ids": data["segments"]}
history = network.fit(inputs, data["labels"], batch_size=4, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
