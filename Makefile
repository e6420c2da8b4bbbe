# `make demo` and `make test` do all the set-up themselves; `make` is what to run before a commit.
.DEFAULT_GOAL := check
.PHONY: bench check consistency crash demo differential format help histories hoist laws lint
.PHONY: nexmark pipeline-faults pipeline-laws schedules setup slt test tpch
BIN := .venv/bin

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: ## build .venv from requirements.lock; does nothing when that is done
	@tools/setup.sh

demo: setup ## show what Belvedere does
	$(BIN)/belvedere demo

check: lint ## format, lint, types, tidy and fast tests, in about a minute
	$(BIN)/python -m tools.run_tests --fast

test: $(if $(PART),setup,lint) ## everything CI runs; PART=views runs one part
	$(BIN)/python -m tools.run_tests $(PART)

crash: setup ## prove recovery by killing and damaging; PROFILE=ci SEED=7 for more
	$(BIN)/python -m tests.simulation.crash --profile $(or $(PROFILE),quick) --seed $(or $(SEED),1)

schedules: setup ## run the row-atomic commit under 10,000 seeded schedules; SEEDS=500 for fewer
	$(BIN)/python -m tests.simulation.row.schedules --seeds $(or $(SEEDS),10000)

histories: setup ## run sessions beside each other and judge what they saw; PROFILE=ci SEED=7 for more
	$(BIN)/python -m tests.simulation.history --profile $(or $(PROFILE),quick) --seed $(or $(SEED),1)

laws: setup ## the law of views at length, on RocksDB and on cells: 300 random views, 50 transactions each; CASES=5 SEED=7
	$(BIN)/python -m tests.properties.views.hunt --cases $(or $(CASES),50) --steps 50 --store rocksdb --seed $(or $(SEED),1)
	$(BIN)/python -m tests.properties.views.hunt --cases $(or $(CASES),50) --steps 50 --store cells --seed $(or $(SEED),1)
	$(BIN)/python -m tests.properties.views.planted

hoist: setup ## every query of SQL Logic Test as a view; TABLES=10 leaves out longer joins; SHARD=3/20 a part
	nice $(BIN)/python -m tests.properties.views.hoist --tables $(or $(TABLES),64) --shard $(or $(SHARD),1/1)

tpch: setup ## the queries of TPC-H as views at scale factor 0.01; LINES=1200 for less, SEED=7
	nice $(BIN)/python -m tests.properties.views.tpch --lines $(or $(LINES),60000) --seed $(or $(SEED),1)

nexmark: setup ## the queries of Nexmark as views of 60,000 events; EVENTS=3000 for less, SEED=7
	nice $(BIN)/python -m tests.properties.views.nexmark_whole --events $(or $(EVENTS),60000) --seed $(or $(SEED),1)

consistency: setup ## which consistency level views have under load; RUNS=100 SEED=7 for more
	$(BIN)/python -m tests.consistency --runs $(or $(RUNS),20) --seed $(or $(SEED),1)

bench: setup ## a benchmark, with plots in build/: WORKLOAD=views, vms, cloudtps, pnuts; SCALE=0.1
	@mkdir -p build
	$(BIN)/belvedere bench $(or $(WORKLOAD),views) --scale $(or $(SCALE),1) \
		--json build/$(or $(WORKLOAD),views).json --plots build/plots

pipeline-laws: setup ## immediate == deferred == Spark: 60 random views, 10 batches each, and TPC-H; SEED=7
	$(BIN)/python -m tests.pipeline.spark_laws --cases 12 --views 5 --batches 10 --seed $(or $(SEED),1)
	$(BIN)/python -m tests.pipeline.spark_tpch --lines 2000 --cycles 2 --seed $(or $(SEED),1)

pipeline-faults: setup ## 30 kills of driver, Python workers and owner of a Spark job, 15 while views are filled; executors come and go; SEED=7
	$(BIN)/python -m tests.pipeline.spark_faults --kills 30 --seed $(or $(SEED),1)
	$(BIN)/python -m tests.pipeline.spark_fill_faults --kills 15 --seed $(or $(SEED),1)
	$(BIN)/python -m tests.pipeline.spark_elastic --seed $(or $(SEED),1)

lint: setup ## format, lint and types only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup ## format and sort imports in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

slt: setup ## run the whole corpus of SQL Logic Test in every tier, and on PostgreSQL
	nice $(BIN)/python -m tests.slt.runner --tiers postgres direct duckdb auto

differential: setup ## compare 20,000 random statements with PostgreSQL; SEED=7 begins elsewhere
	nice $(BIN)/python -m tests.properties.sql.hunt $(if $(SEED),--seed $(SEED)) --statements 20000
