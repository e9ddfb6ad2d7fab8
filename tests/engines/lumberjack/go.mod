module ascend-elk/tests/lumberjack

go 1.26

require github.com/elastic/go-lumber v0.1.0

require github.com/klauspost/compress v1.20.4 // indirect
