"""`serve`: until Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, each_channel, option
from rplctl.cli.output import say_notes
from rplctl.command.channel.context import Note
from rplctl.secret import read_secret_file


def serve(
    options: Globals,
    channel: str | None = CHANNELS,
    listen: str = option("--listen", "HOST:PORT", "Where to answer.", "127.0.0.1:9104"),
    token_file: Path | None = option(
        "--token-file", "FILE", "Readers must show the token in it, which only you can read."
    ),
    tls_cert: Path | None = option("--tls-cert", "FILE", "Answer with TLS: the certificate, PEM."),
    tls_key: Path | None = option("--tls-key", "FILE", "Its key, when that is another file."),
) -> None:
    """Serve metrics, health and a page over HTTP."""
    from rplctl.command.serve import Request, is_local, serve as run
    from rplctl.command.watching.watch import Watch

    each_channel(options, channel)  # what is mistyped is told before anything is begun
    token = read_secret_file(token_file) if token_file else ""
    if not token and not is_local(listen):
        say_notes(
            options, [Note(f"whoever reaches {listen} reads the state of the channels: --token-file asks for a token")]
        )
    with run(
        Request(listen, token, tls_cert, tls_key), Watch(lambda: each_channel(options, channel), checks=True)
    ) as server:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if not options.quiet:
            sys.stderr.write(f"rplctl serves {server.url}\n")
        signal.pause()
