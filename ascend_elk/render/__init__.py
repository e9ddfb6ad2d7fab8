"""Configuration for Filebeat and Logstash, generated from the formats."""

from ascend_elk.render.options import RenderOptions
from ascend_elk.render.tree import render, write

__all__ = ["RenderOptions", "render", "write"]
