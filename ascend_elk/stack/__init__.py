"""Installs templates, pipelines, roles and keys into Elasticsearch, and content into Kibana."""
