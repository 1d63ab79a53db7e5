"""Channels that are looked at again and again: what `metrics`, `serve` and `top` show.

seen      a channel at one moment
watch     every channel, each few seconds: the moment, what `check` says, and the last hour
document  a watched moment as JSON

page.html draws that; alerts.yml are rules for Prometheus over `metrics`.
"""
