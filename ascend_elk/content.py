"""Where the product's content (grok, codes, templates) lies: beside the package or inside the wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def content_dir(name: str) -> Path:
    """Return the directory of one kind of content.

    Args:
        name: ``grok``, ``codes``, ``filebeat``, ``logstash``, ``elasticsearch``, ``kibana`` or ``ansible``.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for root in (_PACKAGE / "content", _PACKAGE.parent):
        path = root / name
        if path.is_dir():
            return path
    raise FileNotFoundError(f"the installation lacks its {name}/ content; reinstall ascend-elk")
