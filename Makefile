# Usher. `make run` is the whole of it; `make help` lists the rest.

SHELL         := /bin/bash
GOLANGCI      := v2.15.0
BIN           := $(CURDIR)/.bin
DATA          ?=
TEST_TIMEOUT  ?= 20m
MILLION       ?= 1000000

.PHONY: help run deps deps-run deps-test deps-lint build test lint bench million kafka-test audit clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: deps-run build ## everything on this machine: waiting rooms, box office, payments (DATA=dir keeps the data)
	@exec .bin/usher dev $(if $(DATA),--data $(DATA))

deps: deps-run deps-test deps-lint ## install what is missing: Postgres, Redis, Chromium, the linter

deps-run:
	@.ci/deps postgres redis

deps-test:
	@.ci/deps postgres redis chromium node curl altcha axe

# Pinned by version and rebuilt when another one lies there.
deps-lint:
	@if ! $(BIN)/golangci-lint version 2>/dev/null | grep -q " $(GOLANGCI:v%=%) "; then \
		echo "building golangci-lint $(GOLANGCI) (a few minutes, once)"; \
		GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI); \
	fi

build: ## .bin/usher, static
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(BIN)/usher ./cmd/usher

lint: deps-lint ## vet and golangci-lint, with the import law
	go vet ./...
	$(BIN)/golangci-lint run ./...

test: deps-test lint ## vet, lint, and every test with -race against real Postgres, Redis and Chromium
	go test -race -timeout $(TEST_TIMEOUT) ./...

bench: deps-run ## polls, joins, streams and lanes beside what they are compared with; a quiet machine, some minutes
	USHER_BENCH=1 go test -run '^TestBench' -count=1 -v -timeout 30m ./queue ./cmd/usher/internal/benchhttp
	go test -run '^$$' -bench . -benchtime 2s -timeout 30m ./queue/queuehttp ./queue/limits ./queue/proof ./booking

million: deps-run ## a line of MILLION fans on this machine: bytes a fan, slow scripts, the cost of a poll
	USHER_MILLION=$(MILLION) go test -run '^TestMillion$$' -count=1 -v -timeout 30m ./queue

KAFKA         := booking/outbox/kafkasink/testdata/kafka

# Maven brings the broker once; it needs a Java of 17 or later.
kafka-test: deps-run ## events through a real Kafka broker, killed and started again on the way
	@for c in java mvn; do command -v $$c >/dev/null || { echo "kafka-test needs $$c; on Debian: apt-get install -y default-jre-headless maven" >&2; exit 1; }; done
	@cmp -s $(KAFKA)/pom.xml $(BIN)/kafka/pom.xml || { echo "fetching Kafka" && mvn -q -B -f $(KAFKA)/pom.xml dependency:copy-dependencies -DoutputDirectory=$(BIN)/kafka/libs && cp $(KAFKA)/pom.xml $(BIN)/kafka/pom.xml; }
	USHER_KAFKA=$(BIN)/kafka/libs go test -race -run '^TestEventsReachARealKafka$$' -count=1 -v -timeout 10m ./booking/outbox/kafkasink

audit: ## check every invariant against USHER_POSTGRES_URL, or the data kept in DATA
	go run ./cmd/usher audit $(if $(DATA),--data $(DATA))

clean: ## remove what was built; data kept with DATA=dir stays
	rm -rf $(BIN)/usher .screens coverage.out
