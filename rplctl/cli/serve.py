"""Define the options of `serve`, and run it until Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, each_channel, option, switch
from rplctl.cli.output import say_notes
from rplctl.command.channel.context import Note
from rplctl.errors import UsageError
from rplctl.secret import read_secret_file


def serve(
    options: Globals,
    channel: str | None = CHANNELS,
    listen: str = option("--listen", "HOST:PORT", "Address and port of the HTTP page; '' = no page.", "127.0.0.1:9104"),
    token_file: Path | None = option(
        "--token-file", "FILE", "File with the token that clients must send; only its owner may read it."
    ),
    tls_cert: Path | None = option("--tls-cert", "FILE", "Certificate for TLS, as PEM."),
    tls_key: Path | None = option("--tls-key", "FILE", "Private key of --tls-cert, if it is in another file."),
    mysql: str = option("--mysql", "HOST:PORT", "Address and port for MySQL clients.", ""),
    mysql_socket: Path | None = option("--mysql-socket", "FILE", "Unix socket for MySQL clients."),
    mysql_flavor: str = option(
        "--mysql-flavor", "mysql|mariadb", "Vendor that rplctl reports to MySQL clients.", "mysql"
    ),
    require_tls: bool = switch("--require-tls", "Refuse MySQL clients without TLS."),
) -> None:
    """Serve metrics and a page over HTTP, and MySQL clients."""
    from rplctl.command.serve import HttpRequest, is_local, serve as run
    from rplctl.command.user import refuse_missing_folder
    from rplctl.command.watching.watch import Watch
    from rplctl.front.server import MysqlRequest, MysqlServer

    each_channel(options, channel)  # reports a mistyped name before anything starts
    refuse_missing_folder(options.config())
    token = read_secret_file(token_file) if token_file else ""
    if listen and not token and not is_local(listen):
        say_notes(
            options,
            [
                Note(
                    f"everyone who can reach {listen} can read the state of the channels; to require a token, add "
                    "--token-file FILE"
                )
            ],
        )
    if not (listen or mysql or mysql_socket):
        raise UsageError(
            "serve requires an address",
            hint="to serve MySQL clients of this machine, run: rplctl serve --mysql 127.0.0.1:3307",
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # before the first client can connect
    with ExitStack() as open_servers:
        if mysql or mysql_socket:
            request = MysqlRequest(
                listen=mysql,
                socket=mysql_socket,
                flavor=mysql_flavor,
                require_tls=require_tls,
                tls_cert=tls_cert,
                tls_key=tls_key,
            )
            open_servers.enter_context(MysqlServer(request, options.config).running())
            _say(
                options,
                f"rplctl serves MySQL clients on {' and '.join(filter(None, (mysql, str(mysql_socket or ''))))}",
            )
        if listen:
            watch = Watch(lambda: each_channel(options, channel), checks=True)
            server = open_servers.enter_context(
                run(HttpRequest(listen=listen, token=token, tls_cert=tls_cert, tls_key=tls_key), watch)
            )
            _say(options, f"rplctl serves {server.url}")
        signal.pause()


def _say(options: Globals, text: str) -> None:
    if not options.quiet:
        sys.stderr.write(text + "\n")
