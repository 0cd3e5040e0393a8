# `make help` lists what can be made.
.DEFAULT_GOAL := help
cobre := target/release/cobre

# With the backend `mpi` where there is an MPI library; `make mpi=no …` leaves it out.
features = $(shell ci/mpi.sh $(mpi))
differential = COBRE_DIFFERENTIAL=100000 cargo test --release --workspace $(features)

.PHONY: help setup build demo test features wheel dist book pictures bench chaos hostile openmpi pmix slurm ssh differential judges

help: ## list these targets
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing on a Debian-like machine
	@ci/setup.sh

build: setup ## build target/release/cobre, with the backend mpi where an MPI library is installed
	cargo build --release --workspace --bins --examples $(features)

demo: build ## set up, build, and show what it does
	@ci/demo.sh

test: setup ## set up and run every test
	@ci/setup.sh tests
	@ci/setup.sh book
	@ci/setup.sh python
	@ci/test.sh

features: setup ## lints and tests of each backend alone and of none, of the command too
	ci/features.sh whole

wheel: setup ## build the Python package into target/wheels
	@ci/setup.sh python
	@ci/wheel.sh

dist: setup ## pack the command without mpi, completions, manual pages and examples into target/cobre-*.tar.gz
	@ci/dist.sh

book: setup ## build the book into book/book
	@ci/setup.sh book
	target/tools/bin/mdbook build book

pictures: build ## draw the pictures of the book anew
	@ci/setup.sh tests
	ci/pictures.sh

bench: build ## measure training and the collectives, alone and beside the MPI libraries installed
	$(cobre) bench sddp
	$(cobre) bench sddp -n 2
	$(cobre) bench collectives
	$(cobre) bench collectives -n 2
	$(cobre) bench collectives -n 2 --op region
	-$(cobre) bench peers -n 2

chaos: build ## end ranks in every way, at random instants, and check what the others do
	ci/chaos.py 2000
	@ci/setup.sh tests
	ci/chaos_run.py 200

hostile: build ## give the command hostile input of every kind, and judge what it does
	ci/hostile.py 6000 2026

judges: build ## others' test suites, tools and faults from outside: the page Independent judges
	ci/judges/mpi4py.py
	ci/judges/disk.py
	ci/judges/dependencies.py
	ci/judges/manifests.sh
	ci/judges/valgrind.py
	ci/judges/aarch64.sh
	ci/judges/fuzz.py
	ci/judges/sanitizers.sh
	ci/portable.sh whole

openmpi: setup ## every contract of the backend mpi on Open MPI, if that is installed
	ci/openmpi.sh

ssh: build ## jobs on two hosts over real sshd in network namespaces
	ci/ssh.py

slurm: build ## ranks under a real Slurm of two nodes, from Debian's packages
	ci/slurm.sh

pmix: build ## ranks under Open MPI's launcher, which speaks PMIx, from Debian's packages
	ci/pmix.sh

differential: build ## solve 100,000 linear programs and more with the kernel and with HiGHS, and compare
	$(differential) --test differential -- --nocapture
	$(differential) --test published --test hydrothermal -- --nocapture
	$(cobre) bench sddp --solver check --iterations 64 --json
	$(cobre) bench sddp --solver check --iterations 20 --system par6 --system 60r3b --json
	$(cobre) bench sddp --solver check --iterations 10 --system large30 --system large100 --system planes30 --system planes60 --json
	directory=$$(mktemp -d) && $(cobre) init brazil-like "$$directory/case" --hydros 30 && \
		$(cobre) run "$$directory/case" --solver check --iterations 10 --cut-selection lml1 --simulate 20 --json; \
		status=$$?; rm -r "$$directory"; exit $$status
