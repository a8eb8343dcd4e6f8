#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the nets of the benchmarks and of the whole-model tests as ONNX files, with fixed seeds and no download.

  bench/models.py [NAME ...]     writes build/models/NAME.onnx; without a name, all; what exists is kept (--force: made anew)
  bench/models.py --list         the names

Needs Debian's python3-torch and python3-torchvision, so run it with /usr/bin/python3. The weights are random but not
degenerate: batch norms get the statistics of what really flows through them, disturbed a little so that folding them is
no identity, and the last layer is scaled so that the outputs have a standard deviation of about 2, as logits have.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

SEED = 20
OPSET = 14
ROOT = Path(__file__).resolve().parent.parent
IMAGE = (1, 3, 224, 224)
TORCHVISION = {  # name: path of the last layer that has weights
    "resnet18": "fc",
    "resnet50": "fc",
    "mobilenet_v2": "classifier.1",
    "squeezenet1_1": "classifier.1",
    "vgg16": "classifier.6",
    "efficientnet_b0": "classifier.1",
    "densenet121": "classifier",
    "vit_b_16": "heads.head",
}
NAMES = [*TORCHVISION, "bert"]


def calibrate_batch_norms(torch, net, images):
    """Gives every batch norm the mean and variance of its input over `images`, then disturbs them and its weights."""
    norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average
        torch.nn.init.uniform_(norm.weight, 0.6, 1.2)
        torch.nn.init.normal_(norm.bias, 0.0, 0.2)
        norm.train()
    if norms:
        net(images)
    for norm in norms:
        norm.eval()
        norm.running_mean += 0.1 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
        norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.8, 1.25)


def scale_last_layer(torch, net, layer, inputs):
    """Gives `layer` fresh weights for which the outputs of `net` have a standard deviation of about 2 on `inputs`."""
    torch.nn.init.normal_(layer.weight, 0.0, 0.02)
    torch.nn.init.zeros_(layer.bias)
    outputs = net(*inputs)
    layer.weight *= 2.0 / outputs.std()
    torch.nn.init.normal_(layer.bias, 0.0, 0.3)


def image_net(torch, name):
    """The torchvision net `name` and its example input: the model, the inputs, and the keywords of torch.onnx.export."""
    import torchvision

    net = getattr(torchvision.models, name)(weights=None).eval()
    images = torch.randn(4, *IMAGE[1:])
    calibrate_batch_norms(torch, net, images)
    scale_last_layer(torch, net, net.get_submodule(TORCHVISION[name]), (images,))
    return net, (images[:1],), {"input_names": ["input"], "output_names": ["output"]}


def encoder(torch, layers=4, width=384, heads=6, words=8192, longest=512):
    """A BERT-like encoder: ids and mask (batch, length) int64 to states (batch, length, width) float32.

    Embeddings of words and places, then `layers` times attention and a feed-forward net with GELU, each with a residual
    and a layer norm after it (Devlin et al. 2018, arXiv:1810.04805); a mask of 0 hides a place from all others.
    """
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def split(self, x):  # (batch, length, width) -> (batch, heads, length, width / heads)
            return x.view(x.size(0), x.size(1), heads, width // heads).transpose(1, 2)

        def forward(self, x, bias):
            query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            scores = query @ key.transpose(2, 3) / (width // heads) ** 0.5 + bias
            mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.size(0), x.size(1), width)
            x = self.norm1(x + self.out(mixed))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
            self.norm = nn.LayerNorm(width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))

        def forward(self, ids, mask):
            places = torch.arange(ids.size(1), device=ids.device)
            x = self.norm(self.words(ids) + self.places(places))
            bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
            for layer in self.layers:
                x = layer(x, bias)
            return x

    net = Encoder().eval()
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight, gain=1.2)
            nn.init.normal_(module.bias, 0.0, 0.1)
        elif isinstance(module, nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.7, 1.3)
            nn.init.normal_(module.bias, 0.0, 0.1)
    ids = torch.randint(0, words, (2, 12))
    axes = {0: "batch", 1: "length"}
    names = {"input_names": ["input_ids", "attention_mask"], "output_names": ["last_hidden_state"]}
    return net, (ids, torch.ones_like(ids)), {**names, "dynamic_axes": {n: axes for n in sum(names.values(), [])}}


def build(name, path):
    """Writes the net `name` to `path`, in one step, so that a stopped run leaves no half file."""
    import torch

    torch.manual_seed(SEED)
    with torch.no_grad():
        net, inputs, keywords = encoder(torch) if name == "bert" else image_net(torch, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    warnings.simplefilter("ignore", torch.jit.TracerWarning)  # shape checks of torchvision: true for these inputs
    # Outside of no_grad: without gradients torch traces attention as one operator that it cannot export.
    torch.onnx.export(net, inputs, str(partial), opset_version=OPSET, do_constant_folding=True, **keywords)
    os.replace(partial, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="nets to build (default: all)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "models", help="folder (default: build/models)")
    parser.add_argument("--force", action="store_true", help="build what exists too")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(NAMES))
        return 0
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no such net: {', '.join(unknown)}; known: {', '.join(NAMES)}")
    for name in options.names or NAMES:
        path = options.output / f"{name}.onnx"
        if path.exists() and not options.force:
            print(f"{path}: exists", flush=True)
            continue
        start = time.monotonic()
        try:
            build(name, path)
        except ModuleNotFoundError as error:
            print(f"{error}: install python3-torch python3-torchvision and run with /usr/bin/python3", file=sys.stderr)
            return 1
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB in {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
