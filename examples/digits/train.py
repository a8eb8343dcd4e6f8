#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the example model: a small convolutional classifier of scanned handwritten digits, exported to ONNX.

  examples/digits/train.py [--output DIR]     writes digits.onnx, labels.txt and pictures/0.png ... 9.png (default: beside this file)

The data are scikit-learn's digits: 1,797 real scans of 8 x 8 pixels (UCI "Optical Recognition of Handwritten Digits",
Alpaydin and Kaynak 1998). A quarter, drawn with equal shares of the classes, is held out; pictures/N.png is the first
held-out scan of digit N. The script prints the accuracy on what was held out and fails below 97 %.

  image   (1, 1, 8, 8) float32: grey values of a PNG as they are, 0 (paper) to 255 (ink)
  result  (1, 10) float32: probabilities of the digits 0 to 9

Needs Debian's python3-torch, python3-sklearn and python3-pil, so run it with /usr/bin/python3. One thread and fixed
seeds: the same machine writes the same bytes again.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 7
EPOCHS = 40
BATCH = 64
LEAST_ACCURACY = 0.97


class Digits(nn.Module):
    """Two blocks of convolution, batch norm and ReLU, with a maximum pooling after each, then two dense layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))

    def logits(self, image):
        return self.classifier(self.features(image / 255.0))

    def forward(self, image):
        return self.logits(image).softmax(-1)


def shifted(images):
    """The images, each moved by at most one pixel in each direction; what leaves one edge is lost."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    rows, columns = torch.randint(0, 3, (2, len(images)))
    return torch.stack([p[:, r : r + 8, c : c + 8] for p, r, c in zip(padded, rows, columns)])


def train(net, images, labels):
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    net.train()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net.logits(shifted(images[chosen])), labels[chosen]).backward()
            optimizer.step()
        schedule.step()
    net.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent, help="folder to write to")
    output = parser.parse_args().output
    torch.manual_seed(SEED)
    torch.set_num_threads(1)

    scans, digits = load_digits(return_X_y=True)  # grey values 0 to 16
    pixels = np.rint(scans * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    seen, held, seen_digits, held_digits = train_test_split(pixels, digits, test_size=0.25, random_state=SEED, stratify=digits)

    net = Digits()
    train(net, torch.tensor(seen, dtype=torch.float32), torch.tensor(seen_digits))
    with torch.no_grad():
        guesses = net(torch.tensor(held, dtype=torch.float32)).argmax(1).numpy()
    accuracy = (guesses == held_digits).mean()
    print(f"accuracy on {len(held)} held-out scans: {accuracy:.1%}")
    if accuracy < LEAST_ACCURACY:
        return 1

    (output / "pictures").mkdir(parents=True, exist_ok=True)
    for digit in range(10):
        Image.fromarray(held[held_digits == digit][0, 0]).save(output / "pictures" / f"{digit}.png")
    (output / "labels.txt").write_text("".join(f"{word}\n" for word in "zero one two three four five six seven eight nine".split()))
    torch.onnx.export(
        net,
        torch.zeros(1, 1, 8, 8),
        str(output / "digits.onnx"),
        opset_version=14,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,  # keeps the batch norms: folding them is the compiler's work
        input_names=["image"],
        output_names=["result"],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
