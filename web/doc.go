// Package web serves what the agent tells about itself: the page, the JSON status,
// metrics, health and reload. It renders a [Status] value that is handed to it and
// knows nothing else of the agent.
package web
