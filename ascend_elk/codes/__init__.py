"""The error-code catalogue: what a code means in a CANN version, and what to do."""

from ascend_elk.codes.catalogue import Catalogue
from ascend_elk.codes.decode import Decoding, Fact
from ascend_elk.codes.models import Entry, Family
from ascend_elk.codes.signatures import Signature

__all__ = ["Catalogue", "Decoding", "Entry", "Fact", "Family", "Signature"]
