// Command otelsdk is a program instrumented with OpenTelemetry's Go SDK that sends its counts with the SDK's own
// exporters. The end-to-end tests let it send to the agent.
//
// It is a module of its own: the agent must not depend on the SDK, nor on grpc-go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	httpTo := flag.String("http", "", "host:port of an OTLP receiver over HTTP")
	grpcTo := flag.String("grpc", "", "host:port of an OTLP receiver over gRPC")
	delta := flag.Bool("delta", false, "send deltas")
	rounds := flag.Int("rounds", 3, "how often to count and send")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *httpTo, *grpcTo, *delta, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run counts 5 in each round, and sends after each.
func run(ctx context.Context, httpTo, grpcTo string, delta bool, rounds int) error {
	temporality := sdk.DefaultTemporalitySelector
	if delta {
		temporality = func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }
	}
	var exporter sdk.Exporter
	var err error
	if grpcTo != "" {
		exporter, err = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(grpcTo), otlpmetricgrpc.WithInsecure(),
			otlpmetricgrpc.WithCompressor("gzip"), otlpmetricgrpc.WithTemporalitySelector(temporality))
	} else {
		exporter, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(httpTo), otlpmetrichttp.WithInsecure(),
			otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression), otlpmetrichttp.WithTemporalitySelector(temporality))
	}
	if err != nil {
		return fmt.Errorf("make the exporter: %w", err)
	}
	exponential := sdk.NewView(sdk.Instrument{Name: "wait"}, sdk.Stream{Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 3}})
	provider := sdk.NewMeterProvider(
		sdk.WithReader(sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"), attribute.String("service.instance.id", "i1"), attribute.String("deployment.environment", "test"))),
		sdk.WithView(exponential),
	)
	m := provider.Meter("e2e")
	orders, err := m.Int64Counter("orders", metric.WithDescription("Orders taken."))
	if err != nil {
		return err
	}
	size, err := m.Float64Histogram("size", metric.WithUnit("By"), metric.WithExplicitBucketBoundaries(1, 10))
	if err != nil {
		return err
	}
	wait, err := m.Float64Histogram("wait", metric.WithUnit("s"))
	if err != nil {
		return err
	}
	for range rounds {
		orders.Add(ctx, 5, metric.WithAttributes(attribute.String("kind", "book")))
		size.Record(ctx, 5)
		wait.Record(ctx, 3)
		if err := provider.ForceFlush(ctx); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		time.Sleep(5 * time.Millisecond) // times are in milliseconds at the other end
	}
	return provider.Shutdown(ctx)
}
