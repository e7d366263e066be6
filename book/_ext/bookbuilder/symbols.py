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

_NO_PROSE = re.compile(r"^(```+|~~~+).*?^\1\s*$|(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
_MATH = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?!\s)([^$]+?)(?<![\s\\])\$(?!\d)", re.DOTALL)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_WORDS = rf"\\(?:text|operatorname\*?|mathrm|textbf|textit)\s*(?:{_BRACES}|\w)"
_ARGUMENT = rf"\s*(?:{_WORDS}|\\math\w+\s*(?:{_BRACES}|\w)|{_BRACES}|\\[A-Za-z]+(?:\s*{_BRACES})?|[^\s\\])"
_NO_SYMBOL = (
    (
        r"\\\\\s*\[[^]]*\]|\\[hv]space\*?\{[^}]*\}|\\begin\{(?:array|tabular)\}\{[^}]*\}|\\(?:begin|end)\s*\{[^}]*\}",
        " ",
    ),
    (r"\\[!,]", ""),
    # A sign with a range: what stands below and above it is read.
    (
        rf"(\\(?:sum|prod|min|max|int|lim|arg|sup|inf|oplus|bigoplus))\s*_({_ARGUMENT})(?:\^({_ARGUMENT}))?",
        r"\1 \2 \3 ",
    ),
    (rf"_{_ARGUMENT}", " "),
    (r"(?<![A-Za-z\\])e(?=\^)", " "),
    (r"\^\s*\{?(?:\([^)]*\)|\\top|\*|\\star|\\prime)\}?|\^(?:\{T\}|T)", " "),
    (_WORDS, " "),
)
_SYMBOL = re.compile(
    r"\\(mathcal|mathbb|mathfrak)\s*\{?\s*(\w)"
    r"|(\\(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|pi|varpi"
    r"|rho|varrho|sigma|varsigma|tau|upsilon|phi|varphi|chi|psi|omega"
    r"|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell)(?![A-Za-z]))"
    r"|\\[A-Za-z]+|([A-Za-z])"
)


def formulas(text: str) -> list[str]:
    """The LaTeX of the formulas of a Markdown text in their order, without those in code."""
    return [found[1] or found[2] for found in _MATH.finditer(_NO_PROSE.sub(" ", text))]


def bases(latex: str) -> list[str]:
    """The symbols of a formula by the rules above, each once, in the order of their first appearance."""
    for pattern, instead in _NO_SYMBOL:
        latex = re.sub(pattern, instead, latex)
    found = _SYMBOL.findall(latex)
    letters = (rf"\{alphabet}{{{letter}}}" if alphabet else greek or latin for alphabet, letter, greek, latin in found)
    return list(dict.fromkeys(filter(None, letters)))
