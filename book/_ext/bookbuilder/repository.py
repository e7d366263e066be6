"""The one setting from which launch buttons, edit links and the notebooks' first cell derive."""

import os
import re
import subprocess
from pathlib import Path

_REMOTE = re.compile(
    r"^(?:https://|ssh://git@|git@)(?P<host>[\w.-]+\.[a-z]+)[:/](?P<path>[\w.-]+/[\w.-]+?)(?:\.git)?/?$"
)


def normalise(address: str) -> str | None:
    """`https://host/owner/name` for any spelling of a public git address, None for a local or private one."""
    found = _REMOTE.match(address.strip())
    return f"https://{found['host']}/{found['path']}" if found else None


def public_address(folder: Path | None = None) -> str | None:
    """The book's public address: `EXPLAINER_REPOSITORY` if set, else the git remote `origin`, else None."""
    if setting := os.environ.get("EXPLAINER_REPOSITORY"):
        return normalise(setting)
    try:
        remote = subprocess.run(
            ["git", "remote", "get-url", "origin"], cwd=folder, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return normalise(remote.stdout) if remote.returncode == 0 else None
