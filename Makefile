# `make demo` and `make test` do all the set-up themselves; `make` is what to run before a commit.
.DEFAULT_GOAL := check
.PHONY: bench check demo demo-cluster format hbase-down hbase-faults hbase-test hbase-up hbase-url help lint long setup test
BIN := .venv/bin

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## build .venv from requirements.lock; does nothing when that is done
	@tools/setup.sh

demo: setup ## show what Belvedere does
	$(BIN)/belvedere demo

demo-cluster: setup ## two nodes and Spark on one HBase; a node and a writer are killed
	$(BIN)/python -m tools.hbase.demo

check: lint ## format, lint, types, tidy and fast tests, in about a minute
	$(BIN)/python -m tools.run_tests --fast

test: $(if $(PART),setup,lint) ## everything CI runs; PART=views runs one part
	$(BIN)/python -m tools.run_tests $(PART)

long: setup ## list the long test runs; RUN=laws runs one
	@$(BIN)/python -m tools.long_runs $(RUN)

bench: setup ## a benchmark, with plots in build/: WORKLOAD=views SCALE=0.1
	@mkdir -p build
	$(BIN)/belvedere bench $(or $(WORKLOAD),views) --scale $(or $(SCALE),1) \
		--json build/$(or $(WORKLOAD),views).json --plots build/plots

hbase-up: setup ## start a real HBase of this checkout, in one JVM
	@$(BIN)/python -m tools.hbase up

hbase-url: setup ## print the URL of a database on it, nothing else
	@$(BIN)/python -m tools.hbase url

hbase-down: setup ## stop it and remove its data
	@$(BIN)/python -m tools.hbase down

hbase-test: setup ## the tests of transactions, SQL and views on it: all that run on both commits
	@$(BIN)/python -m tools.hbase test

hbase-faults: setup ## writers on a small cluster; processes, servers and gateways killed meanwhile
	@$(BIN)/python -m tests.hbase.faults

lint: setup ## format, lint and types only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup ## format and sort imports in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .
