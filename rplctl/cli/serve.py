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
    listen: str = option("--listen", "HOST:PORT", "Address and port to listen on.", "127.0.0.1:9104"),
    token_file: Path | None = option(
        "--token-file", "FILE", "File with the token that clients must send; only its owner may read it."
    ),
    tls_cert: Path | None = option("--tls-cert", "FILE", "Certificate for TLS, as PEM."),
    tls_key: Path | None = option("--tls-key", "FILE", "Private key of the certificate, if in another file."),
) -> None:
    """Serve metrics, health and a status page over HTTP."""
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
