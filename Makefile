# Targets of the tree; `make` alone lists them. Recording needs root.
PREFIX ?= /usr/local
SEEDS ?= 5
ROUNDS ?= 5
FUZZ ?= 60
TORTURE ?= 900
HOURS ?= 2
COUNT ?= 150
FRESH ?= 50
MEMORY ?= 20
NULLS ?= 20

export PATH := $(PATH):$(HOME)/.cargo/bin

AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Nothing is measured with it, so what builds fastest serves.
HANGDOG := $(TARGET)/debug/hangdog
RELEASE := $(TARGET)/release/hangdog

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing to build and test (apt packages; into target/, what opens exports)
	@scripts/setup.sh
	@scripts/readers.sh

build: ## compile the page and the command: $(TARGET)/debug/hangdog
	@scripts/setup.sh
	@scripts/ui.sh build || echo "ui: the page could not be built, and hangdog open will say so" >&2
	cargo build --locked --bin hangdog

demo: build ## record a program that hangs, and explain the hang
	@scripts/demo.sh $(HANGDOG)

test: ## set up, lint, run every test, and the lab with one seed
	@scripts/test.sh

lint: ## rustfmt, clippy, clang-format, shellcheck
	@scripts/setup.sh
	@scripts/lint.sh

lab: build ## record every program that hangs on purpose, compare verdict and truth (SEEDS=5)
	$(AS_ROOT) python3 lab/run.py --hangdog $(HANGDOG) --seeds $(SEEDS)

lab-compare: build ## record work that is slow for planted reasons, count what compare names (NULLS=20)
	@$(MAKE) -s -C lab build/turns
	$(AS_ROOT) python3 lab/compare/run.py --hangdog $(HANGDOG) --nulls $(NULLS)

lab-compare-servers: ## the same of requests to redis and PostgreSQL, without marks, against the servers' own logs
	@scripts/setup.sh lab-compare
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 lab/compare/servers.py --hangdog $(RELEASE)

lab-flags: build ## threads that hand over by memory alone: the flag told, and found
	@$(MAKE) -s -C lab build/flag_cases build/flag_fixed build/flag_rust
	$(AS_ROOT) python3 lab/flags/run.py --hangdog $(HANGDOG)
	$(AS_ROOT) python3 lab/flags/sanity.py --hangdog $(HANGDOG)

lab-paging: build ## programs that page for a planted reason: counts, segments, verdicts against the truth
	@$(MAKE) -s -C lab build/paging_cases build/libscattered.so
	$(AS_ROOT) python3 lab/paging/run.py --hangdog $(HANGDOG)
	$(AS_ROOT) python3 lab/paging/order.py --hangdog $(HANGDOG)

lab-paging-real: ## LibreOffice and Python from cold files, PostgreSQL beyond its memory: the tables, and whether a prefetch helps
	@scripts/setup.sh lab-paging-real
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 lab/paging/real.py --hangdog $(RELEASE)

accuracy: build ## compose hangs, record them, count right verdicts (COUNT=150 FRESH=50 MEMORY=20; 12 minutes)
	-@$(MAKE) -s -C lab build/venv
	$(AS_ROOT) python3 lab/accuracy.py --hangdog $(HANGDOG) --count $(COUNT) --fresh $(FRESH) \
		--memory $(MEMORY)

lab-real: ## score `why` on real programs (PART= GROUP= SETTING= NAME= SET= RESUME=1)
	@scripts/setup.sh lab-real
	cargo build --locked --release --bin hangdog
	@$(MAKE) -s -C lab build/venv
	$(AS_ROOT) lab/build/venv/bin/python lab/real/run.py --hangdog $(RELEASE) \
		$(PART:%=--part %) $(GROUP:%=--group %) $(SETTING:%=--setting %) $(NAME:%=--name %) \
		$(SET:%=--set %) $(if $(RESUME),--resume)

fuzz: ## fuzz all that reads what comes from outside (FUZZ=60 seconds for each of 14 targets, TARGETS=)
	@scripts/setup.sh
	@scripts/fuzz.sh $(FUZZ) $(TARGETS)

torture: ## run every command on damaged traces: no panic, no hang, no wrong answer (TORTURE=900 seconds)
	@scripts/setup.sh
	HANGDOG_TORTURE_SECONDS=$(TORTURE) cargo test --locked -p hangdog --test torture -- --nocapture

bench: ## measure what recording costs, and numbers beside other tools (ROUNDS=5; about an hour)
	@scripts/setup.sh bench
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 bench/run.py --hangdog $(RELEASE) --rounds $(ROUNDS)
	$(AS_ROOT) python3 bench/storm.py --hangdog $(RELEASE)
	$(AS_ROOT) python3 bench/marks.py --hangdog $(RELEASE)
	$(AS_ROOT) python3 bench/agree.py --hangdog $(RELEASE)
	$(AS_ROOT) python3 bench/paging.py --hangdog $(RELEASE)
	$(AS_ROOT) python3 bench/soak.py --hangdog $(RELEASE) --hours 0.17

soak: ## run the flight recorder for hours under load that makes it grow, and print its memory (HOURS=2)
	@scripts/setup.sh bench
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 bench/soak.py --hangdog $(RELEASE) --hours $(HOURS)

bench-ui: ## measure the page on large traces (TRACE="A.hang B.hang")
	@scripts/ui.sh bench $(TRACE)

screenshots: build ## make the screenshots of the docs from a program that hangs on purpose
	@scripts/demo.sh $(HANGDOG) >/dev/null
	@scripts/ui.sh screenshots $(TARGET)/debug/demo.hang

install: ## install command, man pages and completions (PREFIX=/usr/local, DESTDIR)
	@scripts/setup.sh
	@scripts/ui.sh build || echo "ui: the page could not be built, and hangdog open will say so" >&2
	cargo build --locked --release --bin hangdog
	@scripts/install.sh $(RELEASE) "$(DESTDIR)$(PREFIX)"

clean: ## remove what was built
	cargo clean
	$(MAKE) -C lab clean

.DEFAULT_GOAL := help
.PHONY: help setup bench-ui screenshots build demo test lint lab lab-compare lab-compare-servers lab-flags lab-paging lab-paging-real lab-real accuracy fuzz torture bench soak install clean
