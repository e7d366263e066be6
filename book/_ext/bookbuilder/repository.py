"""The settings from which launch buttons and links to sources derive."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

_REMOTE = re.compile(
    r"^(?:https://|ssh://git@|git@)(?P<host>[\w.-]+\.[a-z]+)[:/](?P<path>[\w.-]+/[\w.-]+?)(?:\.git)?/?$"
)


def normalise(address: str) -> str | None:
    """`https://host/owner/name` for any spelling of a public git address, None for a local or private one."""
    found = _REMOTE.match(address.strip())
    return f"https://{found['host']}/{found['path']}" if found else None


def public_address(folder: Path = Path()) -> str | None:
    """The book's public address: `EXPLAINER_REPOSITORY` if set, else the git remote `origin`, else None."""
    setting = os.environ.get("EXPLAINER_REPOSITORY")
    return normalise(setting or _git("remote", "get-url", "origin", folder=folder))


def site_address(folder: Path = Path()) -> str | None:
    """The address of the published site: `EXPLAINER_SITE`, else the Pages of a repository on GitHub, else None."""
    if setting := os.environ.get("EXPLAINER_SITE"):
        return f"{setting.rstrip('/')}/"
    host, _, path = (public_address(folder) or "").removeprefix("https://").partition("/")
    owner, _, name = path.partition("/")
    pages = f"{owner.lower()}.github.io"
    return None if host != "github.com" else f"https://{pages}/" + (f"{name}/" if name.lower() != pages else "")


def branch() -> str:
    """The branch that links lead to: `EXPLAINER_BRANCH` if set, else main."""
    return os.environ.get("EXPLAINER_BRANCH", "main")


@cache
def _git(*words: str, folder: Path) -> str:
    try:
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=10
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
