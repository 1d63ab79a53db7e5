"""Observe channels repeatedly, for `metrics`, `serve` and `top`.

seen      the state of a channel at one moment
watch     observes every channel every few seconds, with `check` and the last hour
document  the observed state of all channels as JSON

page.html displays this document. alerts.yml has Prometheus rules for `metrics`.
"""
