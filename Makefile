# make help lists the targets. CI runs the same ones, see .ci/run. What is rare (measurements, laboratories, oracles) is a
# command of its own, described in internal/tools/README.md.
GO       ?= go
BIN      := bin
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X hwsagent/internal/version.Version=$(VERSION) -X hwsagent/internal/version.Homepage=$(HOMEPAGE)
export CGO_ENABLED ?= 0

# Programs outside the module, pinned. nfpm v2.46 and later need a module that is not published everywhere.
LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
NFPM := env -u GOOS -u GOARCH $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
SBOM := env -u GOOS -u GOARCH $(GO) run -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

# Modules of their own, which ./... leaves out.
MODULES := e2e/prometheus3 e2e/otelsdk e2e/scrapediff e2e/kubernetes

# The compiler collects garbage for an eighth of its time otherwise; wal and remotewrite ask for the same in their tests.
test race cross: export GOGC ?= 400

.PHONY: help build reference run test race e2e faults nightly fuzz bench lint fmt tidy cross install packages image release release-of clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

build: ## the program, at bin/hwsagent
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hwsagent ./cmd/hwsagent

reference: ## docs/reference from the code; each page's test fails while it is out of date
	$(GO) test -count=1 -run '^TestReference' ./agent ./agent/config ./cmd/hwsagent ./probes/hw ./probes/ipmi ./probes/nvidia ./probes/smart ./probes/snmp/library -update

run: build ## the demo: mutual TLS, a bearer token, an outage, nothing lost
	$(BIN)/hwsagent demo

# Some packages wait for something, so one more than there are processors runs at a time.
PACKAGES_AT_ONCE = $$(($$(getconf _NPROCESSORS_ONLN) + 1))

# One go test ./...: a quick package, so that something shows at once, then those that take longest. -vet=all is what make lint asks of vet, which then has it from the cache.
test: ## all tests that need no other program, as go test ./... does; the last line says what did not run
	@mkdir -p .cache
	@$(GO) tool gotestsum --format standard-quiet --hide-summary skipped --jsonfile .cache/test.json --post-run-command '$(GO) run ./internal/tools/tally' \
		-- -vet=all -timeout 20m -p $(PACKAGES_AT_ONCE) ./internal/refs ./wal ./remotewrite ./internal/... ./...

# -vet=off, here and below: make lint looks at the same files. The race detector of Go 1.26 itself crashes now and then in a
# bubble of synctest (go.dev/issue/78156). Such a run says nothing of this code, so the packages without a result run once
# more; all others are in the cache. A data race, and each other failure, ends the step.
race: ## the tests under the race detector; -short leaves out what is the same for it
	@mkdir -p .cache
	@run() { CGO_ENABLED=1 $(GO) test -race -short -vet=off -p $(PACKAGES_AT_ONCE) -timeout 30m ./remotewrite ./wal ./... >.cache/race.log 2>&1; code=$$?; cat .cache/race.log; return $$code; }; \
		run && exit 0; \
		if grep -qE '^(--- FAIL|WARNING: DATA RACE|panic:|goleak:)|build failed' .cache/race.log || ! grep -qE '^goroutine 0 .*synctest bubble|ThreadSanitizer: CHECK failed' .cache/race.log; then exit 1; fi; \
		echo 'ci-warning: the race detector itself crashed (go.dev/issue/78156); what has no result runs again'; \
		run

# Prometheus 3's receiver and a sender of OpenTelemetry's SDK are not in Debian.
# The nightly tier loads an agent for twenty minutes first.
E2E_TIMEOUT ?= 20m
e2e: build ## the program against Debian's prometheus, victoria-metrics, nginx, snmpd and others
	$(GO) -C e2e/prometheus3 build -o $(CURDIR)/$(BIN)/prometheus3 .
	$(GO) -C e2e/otelsdk build -o $(CURDIR)/$(BIN)/otelsdk .
	HWSAGENT_E2E=1 HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent HWSAGENT_PROMETHEUS3=$(CURDIR)/$(BIN)/prometheus3 HWSAGENT_OTELSDK=$(CURDIR)/$(BIN)/otelsdk \
		$(GO) test -count=1 -vet=off -parallel 8 -timeout $(E2E_TIMEOUT) ./e2e

faults: build ## kills, power cuts, broken disks and networks: the short tier, the same faults each time
	HWSAGENT_E2E=1 HWSAGENT_SEED=1 HWSAGENT_BINARY=$(CURDIR)/$(BIN)/hwsagent $(GO) test -count=1 -vet=off -parallel 8 -timeout 20m ./e2e/crashlab

nightly: ## all that a change need not wait for: exhaustive tests, all faults, known mistakes, fuzzing, wall time; some five hours
	.ci/run nightly

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

BENCHTIME ?= 1s
bench: ## what a sample costs on its way, beside what it should; docs/performance.md explains the figures
	@sed -n '/^<!-- aims -->/,/^<!-- end of aims -->/{/^<!--/d;p}' docs/performance.md
	$(GO) test -run '^$$' -bench 'AppendCommit|CursorNext' -benchtime $(BENCHTIME) ./wal
	$(GO) test -run '^$$' -bench 'Encode2?$$' -benchtime $(BENCHTIME) ./remotewrite/wire
	$(GO) test -run '^$$' -bench 'Queue' -benchtime $(BENCHTIME) ./remotewrite
	$(GO) test -run '^$$' -bench 'Path|Receive' -benchtime $(BENCHTIME) ./agent/inputs ./agent

lint: ## vet and the linters of .golangci.yml
	$(GO) vet ./...
	for m in $(MODULES); do $(GO) -C $$m vet ./... || exit 1; done
	$(LINT) run ./...

fmt: ## formats all Go files; with CI=true a file that was not formatted is a failure
	@changed=$$(gofmt -l -w $$(git ls-files -co --exclude-standard '*.go')) && { [ -z "$$changed" ] || { echo "formatted:" $$changed; [ '$(CI)' != true ]; }; }

tidy: ## go.mod and go.sum of all modules; with CI=true a file that was not tidy is a failure
	for m in . $(MODULES); do $(GO) -C $$m mod tidy $(if $(filter true,$(CI)),-diff) || exit 1; done
	$(GO) mod verify

# linux/amd64 and linux/arm64 differ in no file of ours; make release builds all platforms.
cross: ## the program for the platforms that differ from linux/amd64
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

# Whoever publishes packages or an image names themselves, and the page links there: make packages MAINTAINER='Jo Doe <jo@doe.example>' HOMEPAGE=https://…
export MAINTAINER ?= The hwsagent authors
export HOMEPAGE   ?=
IMAGE             ?= hwsagent

# Manual pages, completion and changelog, which the program and the source give.
define stage
	rm -rf $(STAGE) && mkdir -p $(STAGE)/man
	$(BIN)/hwsagent man $(STAGE)/man
	gzip -9n $(STAGE)/man/*.1
	for shell in bash zsh fish; do $(BIN)/hwsagent completion $$shell >$(STAGE)/completion.$$shell || exit 1; done
	$(BIN)/hwsagent config schema >$(STAGE)/agent.schema.json
	gzip -9nc CHANGELOG.md >$(STAGE)/changelog.gz
	mkdir -p $(STAGE)/docs && cp -R docs/*.md docs/probes docs/reference docs/img $(STAGE)/docs && cp README.md $(STAGE)
	@# A link to a page that only the repository has becomes plain text.
	sed -i -E 's!\[([^]]*)\]\((\.\./)?(ARCHITECTURE|CONTRIBUTING|CHANGELOG|internal|adr|deploy/container)[^)]*\)!\1!g' $(STAGE)/README.md $(STAGE)/docs/*.md $(STAGE)/docs/*/*.md
	cp -R deploy/mixin $(STAGE) && sed -i -E 's|(\.\./)+docs/|/usr/share/doc/hwsagent/docs/|' $(STAGE)/mixin/*.yaml $(STAGE)/mixin/hardware/*.yaml
endef

install: build ## below PREFIX (/usr/local) of DESTDIR; the service and an empty configuration as well
	$(stage)
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

# package makes deb and rpm of the program at $(STAGE)/hwsagent.
package = for kind in deb rpm; do \
		STAGE=$(STAGE) ARCH=$(subst arm,arm7,$(filter arm,$(ARCH)))$(filter-out arm,$(ARCH)) VERSION=$(PACKAGE_VERSION) \
			$(NFPM) package -f deploy/package/nfpm.yaml -p $$kind -t $(DIST)/ || exit 1; \
	done

packages: build ## deb and rpm of ARCH (this machine's), in DIST
	$(stage)
	mkdir -p $(DIST)
	if [ $(ARCH) = "$$($(GO) env GOARCH)" ]; then cp $(BIN)/hwsagent $(STAGE)/hwsagent; else \
		GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(STAGE)/hwsagent ./cmd/hwsagent; fi
	$(package)

image: ## the container image IMAGE, by docker
	docker build -f deploy/container/Dockerfile --build-arg VERSION='$(VERSION)' -t '$(IMAGE)' .

# The platforms of a release: GOOS/GOARCH. Linux has packages, too.
PLATFORMS ?= linux/amd64 linux/arm64 linux/arm windows/amd64 darwin/arm64
release: build ## archives, packages, bills of materials (CycloneDX) and checksums of all PLATFORMS, in DIST
	$(stage)
	rm -rf $(DIST) && mkdir -p $(DIST)
	for platform in $(PLATFORMS); do \
		$(MAKE) --no-print-directory release-of GOOS=$${platform%/*} ARCH=$${platform#*/} || exit 1; \
	done
	cd $(DIST) && sha256sum * >SHA256SUMS

# One platform of a release. The bill's serial number (a UUID of version 8, RFC 9562) is by the program's contents, its time that
# of the commit: the same commit gives the same bill.
release-of: NAME = hwsagent-$(PACKAGE_VERSION)-$(GOOS)-$(ARCH)
release-of: PROGRAM = hwsagent$(if $(filter windows,$(GOOS)),.exe)
release-of:
	rm -rf $(STAGE)/$(NAME) && mkdir $(STAGE)/$(NAME)
	GOOS=$(GOOS) GOARCH=$(ARCH) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(STAGE)/$(NAME)/$(PROGRAM) ./cmd/hwsagent
	cp -R LICENSE NOTICE $(STAGE)/README.md CHANGELOG.md SECURITY.md agent.yaml $(STAGE)/agent.schema.json $(STAGE)/docs $(STAGE)/$(NAME)
	mkdir $(STAGE)/$(NAME)/deploy && cp -R deploy/mixin deploy/examples $(STAGE)/$(NAME)/deploy
	[ $(GOOS) = windows ] || cp -R $(STAGE)/man $(STAGE)/completion.* $(STAGE)/$(NAME)
	[ $(GOOS) != linux ] || cp deploy/package/hwsagent.service $(STAGE)/$(NAME)
	tar -C $(STAGE) --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner -cf - $(NAME) | gzip -9n >$(DIST)/$(NAME).tar.gz
	$(SBOM) bin -json -std -version '$(VERSION)' -notimestamp -output $(STAGE)/$(NAME).cdx.json \
		-serial "$$(sha256sum $(STAGE)/$(NAME)/$(PROGRAM) | sed -E 's/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/\1-\2-8\3-8\4-\5/')" $(STAGE)/$(NAME)/$(PROGRAM)
	sed '0,/"metadata": {/s//&\n    "timestamp": "$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%FT%TZ)",/' $(STAGE)/$(NAME).cdx.json >$(DIST)/$(NAME).cdx.json
	[ $(GOOS) != linux ] || { cp $(STAGE)/$(NAME)/hwsagent $(STAGE)/hwsagent && $(package); }
	rm -rf $(STAGE)/$(NAME)

clean: ## removes what was built
	rm -rf $(BIN) $(STAGE) dist
