"""The symbols of a text: its LaTeX between dollar signs, taken apart into letters.

What counts as one symbol, its *base*:

- a letter (`W`, `h`) or a Greek letter (`\\eta`); `\\varphi` and `\\phi`, `\\ell` and `l` are different;
- a letter in another alphabet is a symbol of its own: `\\mathcal Y` is not `Y`. Bold and upright letters are not;
- accents, primes and subscripts belong to a symbol and are left out: `\\hat y`, `k'_i` and `W_\\text{ICL}` are `y`,
  `k` and `W`. So a subscript names no symbol, except below a sign such as `\\sum`, where the letters of `i < t` count;
- a superscript in brackets, a star and `\\top` are left out, other superscripts are exponents and are read;
- `e` with an exponent is Euler's number and is left out;
- words are no symbols: `\\text{...}`, `\\operatorname{...}` and named functions such as `\\log`.
"""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_MATH = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?!\s)([^$]+?)(?<![\s\\])\$(?!\d)", re.DOTALL)
_LENGTH = re.compile(r"\\\\\s*\[[^]]*\]|\\[hv]space\*?\{[^}]*\}|\\begin\{(?:array|tabular)\}\{[^}]*\}")
_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^}]*\}|\\[A-Za-z]+|\\.|[A-Za-z]|[{}_^]|.", re.DOTALL)

_LETTER = re.compile(
    r"[A-Za-z]|\\(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|pi|rho"
    r"|sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell)"
)
_ALPHABETS = frozenset({"mathcal", "mathbb", "mathfrak"})
_WORDS = frozenset({"text", "operatorname", "mathrm", "textbf", "textit"})
_LIMITS = frozenset({"sum", "prod", "min", "max", "int", "lim", "arg", "sup", "inf", "oplus", "bigoplus"})


def formulas(text: str) -> list[str]:
    """The LaTeX of the formulas of a Markdown text in their order, without those in code."""
    for pattern in (_FENCE, _CODE):
        text = pattern.sub(" ", text)
    return [found[1] or found[2] for found in _MATH.finditer(text)]


def bases(latex: str) -> list[str]:
    """The symbols of a formula by the rules above, each once, in the order of their first appearance."""
    return list(dict.fromkeys(_symbols(_TOKEN.findall(_LENGTH.sub(" ", latex)))))


def _symbols(tokens: list[str]) -> Iterator[str]:
    i, limits = 0, False  # limits: the sign before this token takes a range below it
    while i < len(tokens):
        token = tokens[i]
        name = token[1:] if token.startswith("\\") else ""
        if name in _WORDS:
            _, i = _argument(tokens, i + 2 if tokens[i + 1 : i + 2] == ["*"] else i + 1)
        elif name in _ALPHABETS:
            inside, i = _argument(tokens, i + 1)
            yield f"\\{name}{{{''.join(inside).strip()}}}"
        elif token in ("_", "^"):
            inside, i = _argument(tokens, i + 1)
            exponent = token == "^" and not re.match(r"\s*(\(|\\top|\*|\\star|\\prime|T$)", _untie(inside))
            if exponent or limits:
                yield from _symbols(inside)
            continue  # a sign may have a range below and above
        else:
            i += 1
            if _LETTER.fullmatch(token) and not (token == "e" and tokens[i : i + 1] == ["^"]):
                yield token
        if not token.isspace():
            limits = name in _LIMITS


def _untie(tokens: list[str]) -> str:
    """A superscript without the signs that only set it closer."""
    return "".join(token for token in tokens if token not in ("\\!", "\\,", "{", "}")).strip()


def _argument(tokens: list[str], i: int) -> tuple[list[str], int]:
    """What a command or a subscript at `i` applies to, and where the rest begins."""
    while i < len(tokens) and tokens[i].isspace():
        i += 1
    if i >= len(tokens):
        return [], i
    if tokens[i] != "{":
        if tokens[i][1:] in _WORDS | _ALPHABETS | {"mathbf", "hat", "bar", "tilde"}:
            inside, end = _argument(tokens, i + 1)
            return [tokens[i], "{", *inside, "}"], end
        return [tokens[i]], i + 1
    depth, start = 1, i + 1
    i = start
    while i < len(tokens) and depth:
        depth += {"{": 1, "}": -1}.get(tokens[i], 0)
        i += 1
    return tokens[start : i - 1], i
