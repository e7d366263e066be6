"""Numbers of the papers, as they print them, from papers.toml: each table there names the source it was copied from."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

DAI = "Dai et al. (2023), Findings of ACL 2023, 247"
DEUTCH = "Deutch et al. (2024), NAACL 2024"
DEUTCH_LOGS = "logs of Deutch et al. (2024), GiilDe/ft-vs-icl, means recomputed here"

TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb")
MODELS = ("1.3B", "2.7B")


def quoted(name: str) -> Any:
    """A number or a table of papers.toml by its name; tables are by model, condition and task. KeyError for none."""
    return _tables()[name]


@lru_cache
def _tables() -> dict[str, Any]:
    """All of them."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
