// Package translation turns OTLP metrics into Prometheus samples: the same series, values, times, metadata and
// exemplars as Prometheus' own package storage/remote/otlptranslator/prometheusremotewrite, with names by the library
// that both use, github.com/prometheus/otlptranslator. That package is not imported because it imports Prometheus'
// configuration, and with it the SDKs of three clouds; e2e/scrapediff/otlpdiff compares the two.
//
// Sources: https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/ and
// https://prometheus.io/docs/guides/opentelemetry/.
package translation
