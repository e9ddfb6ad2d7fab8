"""Real servers for the tests: Elasticsearch, Filebeat and a Lumberjack receiver; see README.md."""
