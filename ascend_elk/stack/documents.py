"""The documents for Elasticsearch, as the product renders them."""

from __future__ import annotations

from ascend_elk.cann import Version
from ascend_elk.stack.elasticsearch import Documents


def load_documents(
    *, elasticsearch: tuple[int, int], cann: tuple[Version, ...], parser: str, retention: str
) -> Documents:
    """Render templates, pipelines and lifecycle.

    Args:
        elasticsearch: its major and minor version.
        cann: CANN versions on the hosts, empty for all.
        parser: who parses, ``logstash`` or ``ingest``; only for the latter there are pipelines.
        retention: how long logs are kept, for example ``30d``.

    Raises:
        UserError: a choice makes no sense.
    """
    from ascend_elk.render import RenderOptions
    from ascend_elk.render.tree import documents

    # Indices made for logs came with 8.17; what is older gets what 7.17 gets.
    stack = "7.17" if elasticsearch < (8, 17) else str(min(elasticsearch[0], 9))
    templates, pipelines = documents(
        RenderOptions(cann=cann, stack=stack, parser=parser, retention=retention)
    )
    return Documents(
        lifecycles=templates.lifecycles,
        component_templates=templates.components,
        pipelines=pipelines,
        index_templates=templates.indices,
    )
