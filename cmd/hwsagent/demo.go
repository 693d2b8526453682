package main

import (
	"github.com/spf13/cobra"

	"hwsagent/agent/demo"
)

func newDemoCommand(f *flags) *cobra.Command {
	o := demo.Options{Stdout: f.stdout, Stderr: f.stderr}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job: deliver, survive an outage and a kill, lose nothing",
		Long: `Make a temporary CA, certificates and a token, start a receiver that demands mutual TLS
and the token, and run the ordinary agent against it. Every sample of the demo is
numbered, so what is lost, repeated or out of order is counted from outside.

  hwsagent demo                            the tour: delivery, an outage, kill -9, recovery
  hwsagent demo --script outage --json     the receiver is down for 10 s under load
  hwsagent demo --script crash --json      the agent is killed in the outage and started again

Exits 0 only if nothing is lost and nothing is pending at the end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := demo.Run(cmd.Context(), o); err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Script, "script", "", "outage or crash (default: the tour)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object with the result on stdout")
	cmd.Flags().StringVar(&o.Listen, "web.listen-address", "", "address of the agent's page (default 127.0.0.1:9464, or a free port if that is taken)")
	cmd.Flags().StringVar(&o.Keep, "keep", "", "keep all files in this directory")
	return cmd
}
