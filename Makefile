# Ringleaf's commands; `make help` lists them. Each sets up .venv by itself when it must.

PYTHON ?= python3
VENV ?= .venv
PIP_FLAGS ?=
# With HASHES=1, pip takes only files whose hashes constraints-hashes.txt has; torch is not among them.
HASHES ?=

BIN := $(VENV)/bin
# Python compiles what it imports, and keeps that: pip would compile all, for half of the time.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Where Python may keep nothing, it would compile at each start: what is imported is compiled here.
IMPORTED := numba matplotlib.pyplot scipy.optimize networkx scapy.all finsy typer.main rich.table yaml pydantic
empty :=
comma := ,
imports = $(BIN)/python -c 'import $(subst $(empty) $(empty),$(comma),$(strip $(1)))'
# The pip that comes with Python 3.11 takes twice as long: it looks at all files of each package.
PIP_RELEASE := 26.3
SHELL_VENV ?= .venv-shell
SHELL_STAMP := $(SHELL_VENV)/.ready
STAMP := $(VENV)/.ready

# NAME=value for `make exp` becomes an option of `ringleaf run`; an empty one is not passed on.
include experiments/spec/options.mk
NAMES := $(OPTIONS) SPEC
FLAG_SPEC := --spec
# Values of names that are switches, such as PCAP, that leave them off.
OFF := 0 n N no No NO false False FALSE off Off OFF
ON := 1 y Y yes Yes YES true True TRUE on On ON
SWITCHES := PCAP EXPLAIN CHECK_PACKETS WIDE HASHES HOSTILE
# Values are text: neither make nor the shell looks into them. ARGS alone is the shell's.
q = '$(subst ','\'',$(1))'
define newline


endef
# Names given on the command line, and in the environment; below, values are made text, and look like the Makefile's own.
TYPED := $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(v)))),$(v)))

VALUES := $(NAMES) PCAP EXPLAIN CHECK_PACKETS WIDE ALL RANKS ELEMENTS HTML PACKET PORT ENTRIES JUNIT TRACE ONLY REPEATS JOBS TIME RUNS CASE INPUTS HOSTILE DRAW SINCE
INHERITED := $(foreach v,$(VALUES) ARGS,$(if $(filter environment,$(firstword $(origin $(v)))),$(v)))
$(foreach o,$(VALUES),$(if $(filter-out undefined default,$(origin $(o))),\
  $(if $(findstring $(newline),$(value $(o))),$(error $(o) must be one line))\
  $(eval override $(o) := $$(value $(o)))))

$(foreach o,$(filter $(SWITCHES),$(TYPED)),$(if $(filter-out $(ON) $(OFF),$($(o))),\
  $(error make: $(o): must be yes or no, got '$($(o))'; leave it out for no)))

ifneq ($(filter command,$(origin CC)),) # from elsewhere, CC is a compiler
GIVEN_CC := $(value CC)
unexport CC
endif

flags = $(foreach o,$(1),$(if $($(o)),$(FLAG_$(o)) $(call q,$($(o)))))
RUN_FLAGS = $(call flags,$(NAMES)) \
            $(if $(filter-out $(OFF),$(PCAP)),--pcap) \
            $(if $(filter-out $(OFF),$(EXPLAIN)),--explain) \
            $(if $(filter-out $(OFF),$(CHECK_PACKETS)),--check-packets) \
            $(if $(filter-out $(OFF),$(WIDE)),--wide) \
            $(if $(GIVEN_CC),--cc $(call q,$(GIVEN_CC)))

# A target takes the names in TAKES_target; these are for all. Others are refused, at the end.
TAKEN_BY_ALL := PYTHON VENV PIP_FLAGS HASHES SHELL_VENV
TAKEN_BY_TOOLS := BIN STAMP NUMBA_% XDG_%

.DEFAULT_GOAL := help
.PHONY: help exp step replay test mutants soak trace bench bench-live net clean-net shell venv-shell lint format p4 topo docs coverage options pin clean distclean venv

TAKES_help := ALL
help:  ## Show this text (ALL=1: all options)
	@echo 'Usage: make TARGET [NAME=value ...]'
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'make exp knows these names; [default]$(if $(ALL),,; make help ALL=1 has all):'
	@echo
	@awk -v RS= 'NR == $(if $(ALL),2,1)' experiments/spec/options.txt
	@echo
	@echo 'For instance: make exp TOPO=leafspine ALGO=ring,switchml SIZE=4MiB LOSS=0.1%'

venv: $(STAMP)  ## Set up .venv (the other targets do it themselves)

$(STAMP): pyproject.toml constraints.txt constraints-hashes.txt
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: no $(PYTHON) here; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: Ringleaf needs Python 3.11 or newer, got $$($(PYTHON) --version 2>&1); name another: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "make: $(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV) (once; takes a minute or two)" >&2
	$(PYTHON) -m venv $(VENV)
	$(if $(filter-out $(OFF),$(HASHES)),$(PIP) --require-hashes --no-deps -r constraints-hashes.txt, \
	  @$(PIP) --retries 0 pip==$(PIP_RELEASE) || echo "make: going on with an older pip, which takes longer" >&2)
	PYTHONWARNINGS=ignore $(PIP) $(PIP_FLAGS) $(if $(filter-out $(OFF),$(HASHES)),--no-build-isolation) -c constraints.txt -e '.[dev]'
	$(if $(PYTHONDONTWRITEBYTECODE),@unset PYTHONDONTWRITEBYTECODE; $(call imports,torch.distributed.fsdp) & \
	  $(call imports,$(IMPORTED)); $(BIN)/python -m compileall -q -j 0 ringleaf/*.py ringleaf/*/. bench; wait)
	@touch $@

TAKES_exp := $(NAMES) PCAP EXPLAIN CHECK_PACKETS WIDE CC
exp: $(STAMP)  ## Run an experiment: table, figures, report.html
	@$(BIN)/ringleaf run $(RUN_FLAGS)

TAKES_topo := TOPO OUT
topo: $(STAMP)  ## Draw a topology: make topo TOPO=fattree,k=4
	@$(BIN)/ringleaf topo show $(call q,$(or $(TOPO),fattree)) $(if $(OUT),--out $(call q,$(OUT)))

TAKES_step := ALGO RANKS ELEMENTS TOPO LOSS SEED SLOTS HTML SWITCH_DELAY HOST_DELAY MESSAGE_OVERHEAD INJECT ARGS
step: $(STAMP)  ## Step through a collective: make step ALGO=ring RANKS=4 [ELEMENTS= TOPO= LOSS= HTML=]
	@$(BIN)/ringleaf step $(call q,$(or $(ALGO),ring)) $(if $(RANKS),--ranks $(call q,$(RANKS))) \
	  $(if $(ELEMENTS),--elements $(call q,$(ELEMENTS))) $(if $(TOPO),--topo $(call q,$(TOPO))) $(if $(LOSS),--loss $(call q,$(LOSS))) \
	  $(call flags,SEED SLOTS SWITCH_DELAY HOST_DELAY MESSAGE_OVERHEAD INJECT) $(if $(HTML),--html $(call q,$(HTML))) $(ARGS)

TAKES_replay := TRACE JUNIT ARGS
replay: $(STAMP)  ## Replay traces of switches: make replay TRACE=tests/traces
	@$(if $(TRACE),,echo 'make: replay: TRACE must be a trace, or a folder of some; make replay TRACE=...' >&2; exit 2)
	@$(BIN)/ringleaf replay $(foreach t,$(TRACE),$(call q,$(t))) $(if $(JUNIT),--junit $(call q,$(JUNIT))) $(ARGS)

TAKES_test := JOBS ARGS
# Each process would otherwise compile all tests, and all that they import: more than a minute each.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP)  ## Run the tests, on all cores (JOBS=0: in one process)
	$(BIN)/python -m pytest -n $(call q,$(or $(JOBS),auto)) --dist loadfile --no-loadscope-reorder $(ARGS)

TAKES_trace := PROGRAM PACKET PORT ENTRIES HTML
trace: $(STAMP)  ## Follow a packet: make trace PROGRAM=forward [PACKET=HEX|FILE.pcap#N PORT= ENTRIES= HTML=]
	@$(BIN)/ringleaf trace $(call q,$(or $(PROGRAM),forward)) $(if $(PACKET),--packet $(call q,$(PACKET)),--example) \
	  $(if $(PORT),--port $(call q,$(PORT))) $(if $(ENTRIES),--entries $(call q,$(ENTRIES))) $(if $(HTML),--html $(call q,$(HTML)))

TAKES_bench := ONLY OUT
bench: $(STAMP)  ## Measure Ringleaf's own speed (ONLY=commands|engine|startup|network|peers|jobs|pps|refusals|compressors)
	@$(BIN)/python -m bench $(foreach t,$(ONLY),$(call q,$(t))) $(if $(OUT),--out $(call q,$(OUT)))

TAKES_net := TOPO SWITCH HOSTS RATE DELAY LOSS OUT INJECT SWITCH_DELAY HOST_DELAY MESSAGE_OVERHEAD PROGRAM CONTROL ARGS
net: $(STAMP)  ## Start a live network (root): make net TOPO=fattree,k=4 [SWITCH=bmv2]
	@$(BIN)/ringleaf net $(call q,$(or $(TOPO),fattree)) $(if $(SWITCH),--switch $(call q,$(SWITCH))) \
	  $(if $(HOSTS),--hosts $(call q,$(HOSTS))) $(if $(RATE),--rate $(call q,$(RATE))) $(if $(DELAY),--delay $(call q,$(DELAY))) \
	  $(if $(LOSS),--loss $(call q,$(LOSS))) $(if $(OUT),--out $(call q,$(OUT))) \
	  $(call flags,INJECT SWITCH_DELAY HOST_DELAY MESSAGE_OVERHEAD PROGRAM CONTROL) $(ARGS)

TAKES_clean-net := ALL
clean-net: $(STAMP)  ## Remove the remains of killed live networks (ALL=1: running ones, too)
	@$(BIN)/ringleaf net clean $(if $(ALL),--all)

TAKES_bench-live := ONLY TOPO SCALE ALGO SIZE SWITCH LOSS HOSTS LANES OUT REPEATS
bench-live: $(STAMP)  ## Measure live networks against virtual time (as root; ONLY=fidelity|pps)
	@$(BIN)/python -m bench.live $(foreach t,$(ONLY),--only $(call q,$(t))) $(foreach t,$(TOPO),--topo $(call q,$(t))) \
	  $(foreach t,$(SCALE),--scale $(call q,$(t))) $(foreach o,ALGO SIZE SWITCH LOSS HOSTS LANES OUT,$(if $($(o)),$(FLAG_$(o)) $(call q,$($(o))))) \
	  $(if $(REPEATS),--repeats $(call q,$(REPEATS)))

TAKES_shell := SWITCH
shell: $(SHELL_STAMP)  ## Open p4runtime-shell on a switch: make shell SWITCH=s1, or HOST:PORT/DEVICE
	@$(SHELL_VENV)/bin/python -m ringleaf.experiments.commands.shell $(call q,$(SWITCH))

venv-shell: $(SHELL_STAMP)

# p4runtime-shell pins old releases of IPython and protobuf, which must not meet ours.
$(SHELL_STAMP): constraints-shell.txt
	@echo "setting up $(SHELL_VENV) (once)" >&2
	$(PYTHON) -m venv $(SHELL_VENV)
	$(SHELL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) \
	  -c constraints-shell.txt p4runtime-shell
	@touch $@

TAKES_mutants := ONLY JOBS DRAW SEED SINCE
mutants: $(STAMP)  ## Break one line at a time, and check that tests fail (ONLY=words DRAW=100 SEED= SINCE=main)
	@$(BIN)/python tests/mutants/run_mutants.py $(if $(JOBS),--jobs $(call q,$(JOBS))) $(if $(DRAW),--draw $(call q,$(DRAW))) \
	  $(if $(SEED),--seed $(call q,$(SEED))) $(if $(SINCE),--since $(call q,$(SINCE))) $(if $(ONLY),$(foreach w,$(ONLY),$(call q,$(w))))

TAKES_soak := TIME RUNS SEED CASE JOBS HOSTILE INPUTS
soak: $(STAMP)  ## Run random cases, links failing and switches restarting (TIME=600s; HOSTILE=1: broken input)
	@$(if $(filter-out $(OFF),$(HOSTILE)),\
	  $(BIN)/python -m bench.soak.hostile $(if $(INPUTS),--inputs $(call q,$(INPUTS))) \
	    $(if $(SEED),--seed $(call q,$(SEED))),\
	  $(BIN)/python -m bench.soak $(if $(TIME),--time $(call q,$(TIME))) $(if $(RUNS),--runs $(call q,$(RUNS))) \
	    $(if $(SEED),--seed $(call q,$(SEED))) $(if $(CASE),--case $(call q,$(CASE))) \
	    $(if $(JOBS),--jobs $(call q,$(JOBS))))

lint: $(STAMP)  ## Check formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

p4: $(STAMP)  ## Compile p4/*.p4 again (needs p4c)
	$(BIN)/python p4/compile.py

# The theme's notice on its successor is for who chooses one, not for each build.
# With --quiet, mkdocs does not count warnings, so --strict would mean nothing.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(STAMP)  ## Build the documentation's site in site/, strictly: a warning is an error
	$(BIN)/python -m mkdocs build --strict

TAKES_coverage := ARGS
coverage: $(STAMP)  ## Run the tests, and list lines that no test reaches (pip install pytest-cov)
	@$(BIN)/python -c 'import pytest_cov' 2>/dev/null || \
	  { echo "make: no pytest-cov in $(VENV); install it: $(BIN)/pip install pytest-cov" >&2; exit 1; }
	$(BIN)/pytest -q -n auto --cov=ringleaf --cov-report=term-missing:skip-covered $(ARGS)

options: $(STAMP)  ## Write the texts generated from the options: help, names, pages, schema
	@$(BIN)/python -m ringleaf.experiments.runs.option_texts

pin: $(STAMP)  ## Write the installed versions to constraints.txt, and their licences to NOTICE
	@{ sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip freeze --all --exclude-editable \
	  | grep -viE '^(pip|ringleaf|wheel)[=@ ]' | sed 's/+cpu$$//'; } > constraints.new
	@mv constraints.new constraints.txt
	@$(BIN)/python .ci/notice.py

clean:  ## Remove caches of tools
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -not -path './$(SHELL_VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## Remove results, virtual environments and compiled code, too
	rm -rf runs $(VENV) $(SHELL_VENV) "$${XDG_CACHE_HOME:-$$HOME/.cache}/ringleaf"

# A typed name that no target takes, such as `topo=torus2d`, must not be ignored silently.
GOALS := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
VALID := $(foreach goal,$(GOALS),$(TAKES_$(goal)))
UNKNOWN := $(firstword $(filter-out $(VALID) $(TAKEN_BY_ALL) $(TAKEN_BY_TOOLS),$(TYPED)))
REFUSED = make $(GOALS): unknown name, got '$(UNKNOWN)'
ifneq ($(UNKNOWN),)
$(error $(or $(shell $(PYTHON) -m ringleaf.experiments.commands.make_names $(call q,make $(GOALS)) $(call q,$(UNKNOWN)) \
  $(sort $(VALID)) $(TAKEN_BY_ALL) 2>/dev/null),$(REFUSED)))
endif
# A shell may have a variable for another program, such as DATA: it must not be taken silently.
ifneq ($(filter $(VALID),$(INHERITED)),)
$(info # from the environment: $(foreach o,$(filter $(VALID),$(INHERITED)),$(o)=$(value $(o))))
endif
