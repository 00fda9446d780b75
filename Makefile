# `make help` says what there is. Rust must be installed (https://rustup.rs); what else is missing is installed by apt-get.

.PHONY: help demo test lint bench fmt clippy doc tests doctests tmux components
.DEFAULT_GOAL := help

CARGO := cargo --locked
RUNNER := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test --lib --bins --tests)

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: tmux ## Show the main job: a post in Slack reaches the agent's pane and the ticket
	$(CARGO) build --bins --examples
	@$(CARGO) run --quiet --example demo

test: lint tests doctests ## Run every check and every test

lint: fmt clippy doc ## Check the format, the lints and the docs

bench: tmux ## Measure the main job with the release build, beside the targets (docs/benchmarks.md)
	$(CARGO) build --release --bins --example recorder
	@$(CARGO) bench --bench main_job

fmt: components
	$(CARGO) fmt --check

clippy: components
	$(CARGO) clippy --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items

tests: tmux
	$(CARGO) build --examples
	$(CARGO) $(RUNNER) --no-fail-fast

doctests:
	$(CARGO) test --doc --no-fail-fast

tmux:
	@.ci/install tmux

components:
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy
