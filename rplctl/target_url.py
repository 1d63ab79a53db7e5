"""A target's URL: insert its password for a connection, hide it from people, and compare two URLs."""

from __future__ import annotations

from rplctl.errors import ConfigError


def has_password(url: str) -> bool:
    """True for `kind://user:password@…` and for a `password=` parameter."""
    return ":" in _user_part(url) or "password=" in url.partition("?")[2].lower()


def authority(url: str) -> str:
    """Return `user@host:port` of `kind://user@host:port/database`; '' for a file."""
    return url.partition("://")[2].partition("/")[0]


def _user_part(url: str) -> str:
    return authority(url).rpartition("@")[0]


def url_with_password(url: str, password: str) -> str:
    """Return `mysql://user:password@host/db` for `mysql://user@host/db`, with the password percent-encoded."""
    from urllib.parse import quote

    scheme, separator, rest = url.partition("://")
    user = _user_part(url)
    if not user:
        raise ConfigError(
            "target_password is set, but the target URL names no user", hint="write KIND://USER@HOST/DATABASE"
        )
    return f"{scheme}{separator}{user}:{quote(password, safe='')}{rest[len(user) :]}"


NUL_IN_TEXT = "rplctl_nul_in_text"  # a parameter of PostgreSQL targets that the driver never gets


def url_with_nul_rule(url: str, rule: str) -> str:
    """Return a PostgreSQL URL with the option nul_in_text, unless it has the default; other URLs unchanged."""
    if rule == "stop" or not url.startswith("postgres"):
        return url
    return f"{url}{'&' if '?' in url else '?'}{NUL_IN_TEXT}={rule}"


def url_without_password(url: str) -> str:
    """Return the URL for people, with `***` in place of a password."""
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
    """True if both URLs have the same server, account and database; only the connection's protection may differ."""
    return _place(url) == _place(other)


def _place(url: str) -> tuple[str, list[str]]:
    base, _, query = url.partition("?")
    words = [word for word in query.split("&") if word and not word.startswith(_HOW_NOT_WHERE)]
    return base, sorted(words)
