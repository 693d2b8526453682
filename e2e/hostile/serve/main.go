// Command serve runs a hostile receiver by hand: it plays one behaviour until it is interrupted, and prints the
// requests.
//
//	go run ./e2e/hostile/serve -list
//	go run ./e2e/hostile/serve -listen 127.0.0.1:9999 -behave "a login page"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"hwsagent/e2e/hostile"
)

func main() {
	list := flag.Bool("list", false, "list the behaviours")
	listen := flag.String("listen", "127.0.0.1:0", "host:port")
	name := flag.String("behave", "", "the behaviour's name; none: be well")
	elsewhere := flag.String("elsewhere", "127.0.0.1:1", "host:port that redirects point to")
	caFile := flag.String("ca-file", "hostile-ca.pem", "where to write the authority's certificate, if TLS is needed")
	flag.Parse()
	if *list {
		for _, b := range hostile.Behaviours() {
			fmt.Println(b.Name)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *listen, *name, *elsewhere, *caFile); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, name, elsewhere, caFile string) error {
	o := hostile.Options{Address: listen, Elsewhere: elsewhere}
	var play *hostile.Behaviour
	if all := hostile.Behaviours(); name != "" {
		i := slices.IndexFunc(all, func(b hostile.Behaviour) bool { return b.Name == name })
		if i < 0 {
			return errors.New("there is no such behaviour: see -list")
		}
		play, o.HTTP2 = &all[i], all[i].HTTP2
	}
	if play != nil && play.Secure {
		certs, err := hostile.NewCerts()
		if err != nil {
			return err
		}
		if err := os.WriteFile(caFile, certs.CA, 0o600); err != nil {
			return fmt.Errorf("write the authority's certificate: %w", err)
		}
		fmt.Println("tls_config: {ca_file: " + caFile + "}")
		o.Certs = certs
	}
	s, err := hostile.Start(o)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Play(play); err != nil {
		return err
	}
	fmt.Println("url:", s.URL())
	for tick := time.NewTicker(5 * time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
			c := s.Counts()
			fmt.Printf("%d connections, %d requests, %d met the behaviour\n", c.Connections, c.Requests, c.Fired)
		}
	}
}
