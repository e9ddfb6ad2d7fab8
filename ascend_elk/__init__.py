"""Version-aware parsing, Elastic stack content and diagnosis for Huawei Ascend NPU logs."""

__version__ = "0.1.0"
