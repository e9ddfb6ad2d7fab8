"""The enrichment service: an HTTP API over the catalogue, and the worker behind it."""
