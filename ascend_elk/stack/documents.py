"""The documents for Elasticsearch, as the product renders them."""

from __future__ import annotations

from ascend_elk.stack.elasticsearch import Documents


def load_documents(retention: str | None = None) -> Documents:
    """Templates, pipelines and lifecycle."""
    return Documents()
