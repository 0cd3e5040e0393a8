# `make help` lists what can be made.
.DEFAULT_GOAL := help
cobre := target/release/cobre

.PHONY: help setup build demo test wheel book bench chaos openmpi

help: ## list these targets
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing on a Debian-like machine
	@ci/setup.sh

build: setup ## build target/release/cobre
	cargo build --release --workspace --bins --examples

demo: build ## set up, build, and show what it does
	@ci/demo.sh

test: setup ## set up and run every test
	@ci/setup.sh book
	@ci/setup.sh python
	@ci/test.sh

wheel: setup ## build the Python package into target/wheels
	@ci/setup.sh python
	@ci/wheel.sh

book: setup ## build the book into book/book
	@ci/setup.sh book
	target/tools/bin/mdbook build book

bench: build ## measure training and the collectives, alone and beside the MPI libraries installed
	$(cobre) bench sddp
	$(cobre) bench sddp -n 2
	$(cobre) bench collectives
	$(cobre) bench collectives -n 2
	$(cobre) bench collectives -n 2 --op region
	-$(cobre) bench peers -n 2

chaos: build ## end ranks in every way, at random instants, and check what the others do
	ci/chaos.py 2000

openmpi: setup ## every contract of the backend mpi on Open MPI, if that is installed
	ci/openmpi.sh
