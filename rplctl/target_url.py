"""Functions for the URL of a target: insert or hide its password, and compare two URLs."""

from __future__ import annotations

from rplctl.errors import ConfigError


def has_password(url: str) -> bool:
    """True if the URL contains a password: `kind://user:password@…` or a parameter `password=`."""
    return ":" in _user_part(url) or "password=" in url.partition("?")[2].lower()


def authority(url: str) -> str:
    """Return the part `user@host:port` of the URL `kind://user@host:port/database`. Return '' for the URL of a file."""
    return url.partition("://")[2].partition("/")[0]


def _user_part(url: str) -> str:
    return authority(url).rpartition("@")[0]


def url_with_password(url: str, password: str) -> str:
    """Return the URL with the percent-encoded password after the user: `mysql://user:password@host/db`.

    Raises ConfigError if the URL names no user.
    """
    from urllib.parse import quote

    scheme, separator, rest = url.partition("://")
    user = _user_part(url)
    if not user:
        raise ConfigError(
            "target_password is set, but the target URL names no user", hint="write KIND://USER@HOST/DATABASE"
        )
    return f"{scheme}{separator}{user}:{quote(password, safe='')}{rest[len(user) :]}"


NUL_IN_TEXT = "rplctl_nul_in_text"  # a parameter for rplctl itself, which the PostgreSQL driver never gets


def url_with_nul_rule(url: str, rule: str) -> str:
    """Return the PostgreSQL URL with `rule`, the value of the option nul_in_text, as a parameter.

    The URL is unchanged if `rule` is the default, `stop`, or if the target is not PostgreSQL.
    """
    if rule == "stop" or not url.startswith("postgres"):
        return url
    return f"{url}{'&' if '?' in url else '?'}{NUL_IN_TEXT}={rule}"


def url_without_password(url: str) -> str:
    """Return the URL with `***` in place of its password, to show it to people."""
    user = _user_part(url)
    if ":" in user:
        url = url.replace(user, user.partition(":")[0] + ":***", 1)
    path, mark, query = url.partition("?")
    shown = ["password=***" if p.lower().startswith("password=") else p for p in query.split("&")]
    return path + mark + "&".join(shown)


_HOW_NOT_WHERE = (
    "ssl",
    "tls_",
    "server_public_key",
    "get_server_public_key",
    "connect_timeout",
    "require_auth",
    NUL_IN_TEXT,
)


def is_same_target(url: str, other: str) -> bool:
    """True if both URLs have the same server, account and database.

    The parameters that only protect the connection, such as those of TLS, may differ.
    """
    return _place(url) == _place(other)


def _place(url: str) -> tuple[str, list[str]]:
    base, _, query = url.partition("?")
    words = [word for word in query.split("&") if word and not word.startswith(_HOW_NOT_WHERE)]
    return base, sorted(words)
