"""Where logs lie: path → source and the ids that the path gives; directories → the files to read."""

from ascend_elk.layout.classify import Classification, Classifier, classify, printable
from ascend_elk.layout.discover import discover
from ascend_elk.layout.files import Discovery, LogFile, Skipped, Tree, VersionFile
from ascend_elk.layout.roots import Root, load_roots

__all__ = [
    "Classification",
    "Classifier",
    "Discovery",
    "LogFile",
    "Root",
    "Skipped",
    "Tree",
    "VersionFile",
    "classify",
    "discover",
    "load_roots",
    "printable",
]
