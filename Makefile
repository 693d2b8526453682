# The one entry point. CI runs the same targets.
GO       ?= go
BIN      := bin
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X hwsagent/internal/version.Version=$(VERSION)
export CGO_ENABLED ?= 0

# golangci-lint is pinned here and lives outside the module.
LINT_VERSION := v2.15.0
LINT         := .cache/golangci-lint-$(LINT_VERSION)/golangci-lint

# So is govulncheck.
VULN_VERSION := v1.8.0
VULN         := .cache/govulncheck-$(VULN_VERSION)/govulncheck

# And nfpm, which makes packages. v2.46 and later need a module that is not published everywhere.
NFPM_VERSION := v2.45.2
NFPM         := .cache/nfpm-$(NFPM_VERSION)/nfpm

# The compiler collects garbage for an eighth of its time otherwise; wal and remotewrite ask for the same in their tests.
test race minimal scrapediff cross replant: export GOGC ?= 400

.PHONY: all build minimal run test cover race lint fmt-check tidy-check cross bench bench-process bench-agents fleet million churn bmcs conformance herd e2e oracle faults torture guarantees replant fuzz notice notice-check vulncheck ci clean install packages release

all: build test

build: ## the binary, at bin/hwsagent
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hwsagent ./cmd/hwsagent

.PHONY: reference
reference: ## docs/reference from the code; each page's test fails while it is out of date
	$(GO) test -count=1 -run '^TestReference' ./agent/config ./cmd/hwsagent -update

run: build ## the demo: mutual TLS, bearer token, an outage, nothing lost
	$(BIN)/hwsagent demo

# wal and remotewrite take longest, most of it on one core, so they begin first; what wal covers is
# kept for make cover. -vet=all is what make lint asks of vet, so that one of the two has it from the cache.
# -p 3: on two cores, one of three packages waits for something.
test: build ## everything that needs no other program; what is skipped says why
	@mkdir -p .cache
	$(GO) test -vet=all -timeout 20m -coverpkg ./wal,./wal/queue,./wal/internal/disk,./wal/internal/savefile,./wal/internal/segment -coverprofile .cache/wal.cover ./wal ./wal/queue ./wal/internal/disk ./wal/internal/savefile ./wal/internal/segment & wal=$$!; others=0; \
		$(GO) test -vet=all -timeout 20m -p 3 ./remotewrite $$($(GO) list ./... | grep -vx hwsagent/wal) || others=$$?; \
		wait $$wal && exit $$others

WAL_SOURCES := $(wildcard wal/*.go wal/queue/*.go wal/internal/*/*.go)
.cache/wal.cover: $(WAL_SOURCES)
	@mkdir -p .cache
	$(GO) test -coverpkg ./wal,./wal/queue,./wal/internal/disk,./wal/internal/savefile,./wal/internal/segment -coverprofile $@ ./wal ./wal/queue ./wal/internal/disk ./wal/internal/savefile ./wal/internal/segment

cover: .cache/wal.cover ## of wal: how many statements its tests execute, and which branches of errors they do not reach
	$(GO) run ./internal/tools/reached -profile .cache/wal.cover -min 95 wal
	$(GO) run ./internal/tools/reached -profile .cache/wal.cover -min 95 wal/queue
	$(GO) run ./internal/tools/reached -profile .cache/wal.cover -min 95 wal/internal/disk
	$(GO) run ./internal/tools/reached -profile .cache/wal.cover -min 95 wal/internal/segment
	$(GO) run ./internal/tools/reached -profile .cache/wal.cover -min 95 wal/internal/savefile

.PHONY: scrapediff
scrapediff: ## what the agent stores of a page and of OTLP, compared with Prometheus' own scraper and translation
	$(GO) -C e2e/scrapediff test -vet=off -timeout 10m ./...

# -vet=off, here and below: vet would read all that is linked once more for each way of building it,
# and make lint runs it on the same files.
# The race detector of Go 1.26 itself crashes now and then in a bubble of synctest (go.dev/issue/78156). Such a run says
# nothing of this code, so the packages without a result run once more; all others are in the cache. A data race, and
# each other failure, ends the step.
race: ## -short leaves out the exhaustive loops of one goroutine, which make test runs
	@mkdir -p .cache
	@run() { CGO_ENABLED=1 $(GO) test -race -short -vet=off -p 3 -timeout 30m ./wal ./remotewrite ./... >.cache/race.log 2>&1; code=$$?; cat .cache/race.log; return $$code; }; \
		run && exit 0; \
		if grep -qE '^(--- FAIL|WARNING: DATA RACE|panic:|goleak:)|build failed' .cache/race.log || ! grep -qE '^goroutine 0 .*synctest bubble|ThreadSanitizer: CHECK failed' .cache/race.log; then exit 1; fi; \
		echo 'ci-warning: the race detector itself crashed (go.dev/issue/78156); what has no result runs again'; \
		run

.PHONY: rigs
rigs: $(BIN)/prometheus3 $(BIN)/otelsdk ## the programs that make e2e needs and Debian does not have

e2e: build rigs ## the built binary against Debian's prometheus, victoria-metrics, nginx and snmpd, and Prometheus 3's receiver
	HWSAGENT_E2E=1 HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent HWSAGENT_PROMETHEUS3=$(CURDIR)/$(BIN)/prometheus3 HWSAGENT_OTELSDK=$(CURDIR)/$(BIN)/otelsdk \
		$(GO) test -count=1 -vet=off -parallel 6 -timeout 15m ./e2e

.PHONY: $(BIN)/prometheus3
$(BIN)/prometheus3: # a module of its own: what it needs is nothing that the agent may need; without -trimpath, as tests are built, from whose cache most of it comes
	$(GO) -C e2e/prometheus3 build -o $(CURDIR)/$@ .

.PHONY: $(BIN)/otelsdk
$(BIN)/otelsdk: # likewise
	$(GO) -C e2e/otelsdk build -o $(CURDIR)/$@ .

FAULTS_SEED ?= 1
faults: build ## kills, power cuts, broken disks and networks: the short tier, the same faults each time
	HWSAGENT_E2E=1 HWSAGENT_SEED=$(FAULTS_SEED) HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent \
		$(GO) test -count=1 -vet=off -parallel 4 -timeout 15m ./e2e/crashlab

# HWSAGENT_TORTURE=10 is a tenth of it; HWSAGENT_SEED=… replays a run; PARTS=kills,disk
# picks parts; RUN=Power picks tests of the crash lab.
RESULTS ?= $(CURDIR)/.cache/torture/$(shell date -u +%Y%m%d-%H%M%S).jsonl
torture: build ## the full tier of all fault tests, 90 minutes; a table at the end, all results in RESULTS
	HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent $(GO) run ./internal/tools/torture -results '$(RESULTS)' -parts '$(PARTS)' -run '$(RUN)'

.PHONY: lab
lab: build ## Debian's own kernel in QEMU, its hardware compared with other programs, unplugged, hung and broken: eight minutes of a machine that does nothing else
	HWSAGENT_E2E=1 HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent $(GO) test -count=1 -vet=off -timeout 30m -v ./e2e/lab

guarantees: ## writes what a full run measured into docs/guarantees.md: make guarantees RESULTS=…
	$(GO) run ./internal/tools/guarantees -results '$(RESULTS)' docs/guarantees.md

REPLANT ?= quick
replant: ## bring each known mistake back and see the tests turn red; REPLANT=all also where that takes minutes
	HWSAGENT_REPLANT=$(REPLANT) $(GO) -C internal/tools/replant test -count=1 -parallel 2 -timeout 60m -run '^TestReplant$$'

# FUZZTIME=5000000x is that many inputs for each; FUZZ=… picks targets by their name. An input that is new to
# the fuzzer is made smaller in few steps only, which otherwise takes most of the time.
FUZZTIME ?= 10s
FUZZ     ?= Fuzz
fuzz: ## every fuzz target for FUZZTIME; their corpora also run in make test
	@$(GO) test -list '^$(FUZZ)' ./... | awk '/^Fuzz/ { f[n++] = $$1; next } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' | \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package" || exit 1; \
	done
	@case FuzzTwins in $(FUZZ)*) $(GO) -C e2e/scrapediff test -run '^$$' -fuzz '^FuzzTwins$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x . ;; esac

# DIR is a recording's own tree or has it below: LibreNMS' (SNMP), DMTF's mockups (Redfish), smartctl_exporter's testdata, the dumps of
# nut-ddl, telegraf's captures of nvidia-smi and smartctl. What a directory lacks is skipped by name. LIBRENMS, PROFILES and MIBS are directories
# whose definitions are imported first.
oracle: ## what probes make of recorded hardware against what a plain look into the recordings finds: make oracle CORPUS=DIR [LIBRENMS=DIR] [PROFILES=DIR MIBS=DIR] [SNMP_EXPORTER=PROGRAM SNMP_YML=FILE] (no part of the repository)
	@test -n '$(CORPUS)' || { echo 'make oracle: name a directory with recordings: make oracle CORPUS=DIR' >&2; exit 2; }
	CORPUS='$(abspath $(CORPUS))' ORACLE_LIBRENMS=$(if $(LIBRENMS),'$(abspath $(LIBRENMS))') \
	ORACLE_PROFILES=$(if $(PROFILES),'$(abspath $(PROFILES))') ORACLE_MIBS=$(if $(MIBS),'$(abspath $(MIBS))') \
	SNMP_EXPORTER=$(if $(SNMP_EXPORTER),'$(abspath $(SNMP_EXPORTER))') SNMP_YML=$(if $(SNMP_YML),'$(abspath $(SNMP_YML))') \
		$(GO) test -count=1 -v -run TestOracle ./probes/snmp ./probes/redfish ./probes/smart ./probes/nut ./probes/nvidia

BENCHTIME ?= 1s

bench: ## what a sample costs on its way, beside what it should; docs/performance.md explains the figures
	@sed -n '/^<!-- aims -->/,/^<!-- end of aims -->/{/^<!--/d;p}' docs/performance.md
	$(GO) test -run '^$$' -bench 'AppendCommit|CursorNext' -benchtime $(BENCHTIME) ./wal
	$(GO) test -run '^$$' -bench 'Encode2?$$' -benchtime $(BENCHTIME) ./remotewrite/wire
	$(GO) test -run '^$$' -bench 'Queue' -benchtime $(BENCHTIME) ./remotewrite
	$(GO) test -run '^$$' -bench 'Path|Receive' -benchtime $(BENCHTIME) ./agent/inputs ./agent

bench-process: ## the built agent under load and after an outage, three minutes: CPU, memory, bytes, time to catch up
	HWSAGENT_E2E=1 HWSAGENT_BENCH=60s $(GO) test -count=1 -timeout 8m -run "TestProcessFigures|TestScrapeFigures" -v ./e2e

# Agents that are neither named nor in PATH are left out. STEADY, SMALL and OUTAGE are durations; PARTS picks of steady,small,v2,zstd,start;
# DOCS=1 writes the table into docs/performance.md.
PROMETHEUS  ?=
VMAGENT     ?=
AGENTS_JSON ?= .cache/bench-agents.json
bench-agents: build ## hwsagent beside prometheus and vmagent, of PATH or make bench-agents PROMETHEUS=… VMAGENT=…; 25 minutes, QUICK=1: four
	@mkdir -p .cache
	$(GO) build -o $(BIN)/benchagents ./internal/tools/benchagents
	$(BIN)/benchagents -hwsagent $(BIN)/hwsagent -prometheus '$(PROMETHEUS)' -vmagent '$(VMAGENT)' -dir .cache -json '$(AGENTS_JSON)' \
		$(if $(QUICK),-quick) $(if $(STEADY),-steady $(STEADY)) $(if $(SMALL),-small $(SMALL)) $(if $(OUTAGE),-outage $(OUTAGE)) $(if $(DOCS),-docs docs/performance.md) -parts '$(PARTS)'

fleet: ## one agent and 1,000 simulated SNMP devices of 1,312 variables, every twentieth dead, each 60 s; four minutes
	HWSAGENT_E2E=1 HWSAGENT_SNMP_FLEET=1000 $(GO) test -count=1 -timeout 10m -run TestSNMPFleet -v ./e2e

million: build ## one agent that scrapes a million series each minute for two receivers; four minutes
	HWSAGENT_E2E=1 HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent HWSAGENT_MILLION=100 $(GO) test -count=1 -timeout 10m -run TestMillion -v ./e2e

churn: ## ten million series that come and go while a target is down: what they leave in memory; ten minutes or more
	HWSAGENT_CHURN=10000000 $(GO) test -count=1 -timeout 20m -run TestChurn -v ./agent

bmcs: ## one agent and 200 simulated BMCs of 60 sensors, each 60 s, without and with ten more that hang; nine minutes
	HWSAGENT_E2E=1 HWSAGENT_BMCS=200 HWSAGENT_BMCS_INTERVAL=60s $(GO) test -count=1 -timeout 15m -run TestIPMIFleet -v ./e2e

conformance: build ## the public suites for senders, five minutes: make conformance COMPLIANCE=… (a clone of prometheus/compliance)
	e2e/conformance/run '$(COMPLIANCE)' $(BIN)/hwsagent

herd: ## ten thousand simulated agents whose receiver comes back: docs/herd.md and its picture
	$(GO) test -count=1 -run '^TestHerd$$' -v ./remotewrite -herd.docs '$(CURDIR)/docs'

.PHONY: pictures
pictures: ## pictures of the page in its states, by chromium, for the documentation; look at them before they are committed
	$(GO) test -count=1 -run '^TestPictures$$' ./agent/web -pictures '$(CURDIR)/docs/img'

$(LINT):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

lint: $(LINT) ## vet and the linters of .golangci.yml
	$(GO) vet ./...
	$(GO) -C e2e/prometheus3 vet ./...
	$(GO) -C e2e/otelsdk vet ./...
	$(GO) -C e2e/scrapediff vet ./...
	$(GO) -C e2e/kubernetes vet ./...
	$(GO) -C e2e/kubernetes test ./...
	$(LINT) run ./...

notice: ## writes NOTICE: the licences of all that is linked
	$(GO) run ./internal/tools/notices -o NOTICE

notice-check: ## fails when NOTICE is out of date
	$(GO) run ./internal/tools/notices -check NOTICE

$(VULN):
	GOBIN=$(CURDIR)/$(@D) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)

vulncheck: $(VULN) ## fails when known vulnerabilities are reached, warns when their database is out of reach
	$(GO) run ./internal/tools/vulncheck -program $(VULN) ./...

ci: ## what continuous integration runs; installs Debian packages
	bash .ci/run

fmt-check:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofmt-clean:"; echo "$$out"; exit 1; }

tidy-check:
	$(GO) mod tidy -diff
	$(GO) -C e2e/prometheus3 mod tidy -diff
	$(GO) -C e2e/otelsdk mod tidy -diff
	$(GO) -C e2e/scrapediff mod tidy -diff
	$(GO) -C e2e/kubernetes mod tidy -diff
	$(GO) mod verify

minimal: ## the agent without scraping, and the tests that it has
	$(GO) build -tags minimal -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hwsagent-minimal ./cmd/hwsagent
	$(GO) vet -tags minimal ./agent/... ./cmd/...
	$(GO) test -tags minimal -vet=off -run 'Config|Load|Check|Document|Example' ./agent ./agent/config

cross: ## every platform that is released
	GOOS=linux   GOARCH=amd64 $(GO) build -o /dev/null ./cmd/hwsagent
	GOOS=linux   GOARCH=arm64 $(GO) build -o /dev/null ./cmd/hwsagent
	GOOS=linux   GOARCH=arm   $(GO) build -o /dev/null ./cmd/hwsagent
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/hwsagent
	GOOS=darwin  GOARCH=arm64 $(GO) build -o /dev/null ./cmd/hwsagent

# What is installed. The times of all files are those of the commit: the same commit gives the same packages.
DESTDIR ?=
PREFIX  ?= /usr/local
STAGE   ?= .cache/stage
DIST    ?= dist
ARCH    ?= $(shell $(GO) env GOARCH)
export SOURCE_DATE_EPOCH ?= $(shell git show -s --format=%ct HEAD 2>/dev/null || echo 0)
PACKAGE_VERSION ?= $(shell TZ=UTC sh deploy/package/version.sh '$(VERSION)')

.PHONY: stage
stage: build ## manual pages, completion and changelog, which the program and the source give
	rm -rf $(STAGE) && mkdir -p $(STAGE)/man
	$(BIN)/hwsagent man $(STAGE)/man
	gzip -9n $(STAGE)/man/*.1
	for shell in bash zsh fish; do $(BIN)/hwsagent completion $$shell >$(STAGE)/completion.$$shell || exit 1; done
	$(BIN)/hwsagent config schema >$(STAGE)/agent.schema.json
	gzip -9nc CHANGELOG.md >$(STAGE)/changelog.gz

install: stage ## below PREFIX (/usr/local) of DESTDIR; the service and an empty configuration as well
	install -D -m 755 $(BIN)/hwsagent $(DESTDIR)$(PREFIX)/bin/hwsagent
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 && install -m 644 $(STAGE)/man/* $(DESTDIR)$(PREFIX)/share/man/man1
	install -D -m 644 $(STAGE)/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hwsagent
	install -D -m 644 $(STAGE)/completion.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_hwsagent
	install -D -m 644 $(STAGE)/completion.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/hwsagent.fish
	install -d $(DESTDIR)/etc/systemd/system $(DESTDIR)$(PREFIX)/share/hwsagent/systemd
	sed 's|/usr/bin/|$(PREFIX)/bin/|; s|/usr/share/|$(PREFIX)/share/|' deploy/package/hwsagent.service >$(DESTDIR)/etc/systemd/system/hwsagent.service
	install -m 644 $(STAGE)/agent.schema.json $(DESTDIR)$(PREFIX)/share/hwsagent
	install -m 644 deploy/package/dropins/* $(DESTDIR)$(PREFIX)/share/hwsagent/systemd
	@# As in the packages: made once, by whoever may make users.
	[ -n '$(DESTDIR)' ] || sh deploy/package/before-install.sh
	install -d -m 750 $(DESTDIR)/etc/hwsagent $(DESTDIR)/etc/hwsagent/conf.d
	[ -e $(DESTDIR)/etc/hwsagent/agent.yaml ] || install -m 640 deploy/package/agent.yaml $(DESTDIR)/etc/hwsagent/agent.yaml
	[ -n '$(DESTDIR)' ] || chgrp hwsagent /etc/hwsagent /etc/hwsagent/conf.d /etc/hwsagent/agent.yaml

$(NFPM):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)

# package makes deb and rpm of the program at $(STAGE)/hwsagent.
package = for kind in deb rpm; do \
		STAGE=$(STAGE) ARCH=$(subst arm,arm7,$(filter arm,$(ARCH)))$(filter-out arm,$(ARCH)) VERSION=$(PACKAGE_VERSION) \
			$(NFPM) package -f deploy/package/nfpm.yaml -p $$kind -t $(DIST)/ || exit 1; \
	done

packages: $(NFPM) stage ## deb and rpm of ARCH (this machine's), in DIST
	mkdir -p $(DIST)
	if [ $(ARCH) = "$$($(GO) env GOARCH)" ]; then cp $(BIN)/hwsagent $(STAGE)/hwsagent; else \
		GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(STAGE)/hwsagent ./cmd/hwsagent; fi
	$(package)

# The platforms of a release: GOOS/GOARCH. Linux has packages, too.
PLATFORMS ?= linux/amd64 linux/arm64 linux/arm windows/amd64 darwin/arm64
release: $(NFPM) stage ## archives, packages, bills of materials (CycloneDX) and checksums of all PLATFORMS, in DIST
	rm -rf $(DIST) && mkdir -p $(DIST)
	for platform in $(PLATFORMS); do \
		$(MAKE) --no-print-directory release-of GOOS=$${platform%/*} ARCH=$${platform#*/} || exit 1; \
	done
	cd $(DIST) && sha256sum * >SHA256SUMS

.PHONY: release-of
release-of: NAME = hwsagent-$(PACKAGE_VERSION)-$(GOOS)-$(ARCH)
release-of: PROGRAM = hwsagent$(if $(filter windows,$(GOOS)),.exe)
release-of:
	rm -rf $(STAGE)/$(NAME) && mkdir $(STAGE)/$(NAME)
	GOOS=$(GOOS) GOARCH=$(ARCH) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(STAGE)/$(NAME)/$(PROGRAM) ./cmd/hwsagent
	cp -R LICENSE NOTICE README.md CHANGELOG.md agent.yaml $(STAGE)/man $(STAGE)/agent.schema.json $(STAGE)/completion.* deploy/package/hwsagent.service $(STAGE)/$(NAME)
	tar -C $(STAGE) --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner -cf - $(NAME) | gzip -9n >$(DIST)/$(NAME).tar.gz
	env -u GOOS -u GOARCH $(GO) run ./internal/tools/sbom -version '$(VERSION)' -time $(SOURCE_DATE_EPOCH) $(STAGE)/$(NAME)/$(PROGRAM) >$(DIST)/$(NAME).cdx.json
	[ $(GOOS) != linux ] || { cp $(STAGE)/$(NAME)/hwsagent $(STAGE)/hwsagent && $(package); }
	rm -rf $(STAGE)/$(NAME)

clean:
	rm -rf $(BIN) $(STAGE) dist
