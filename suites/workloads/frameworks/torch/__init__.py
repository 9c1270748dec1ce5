"""PyTorch, 1.1 to 2.x."""

RANK = 1
PACKAGES = ("torchvision",)
