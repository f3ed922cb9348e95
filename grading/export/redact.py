"""Secrets that agents print, and how they are taken out of what leaves the house. Core.

A rule names a shape that is a key by itself, or a name that says so beside a value. Same text, same result.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECRET = "[secret]"
_NAMES = r"password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key"

SHAPES = (  # keys that say what they are
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,8000}?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,255}\b|\bgithub_pat_[A-Za-z0-9_]{20,255}\b",
    r"\bglpat-[A-Za-z0-9_-]{16,64}\b",
    r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,255}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}",
    r"\bAIza[0-9A-Za-z_-]{35}\b",
    r"\bhf_[A-Za-z0-9]{20,64}\b|\bnpm_[A-Za-z0-9]{30,64}\b|\bpypi-[A-Za-z0-9_-]{16,255}",
    r"\bgagar_[A-Za-z0-9_-]{30,64}",
    r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}",
)
VALUES = (  # the group `value` is the secret, the words around it stay
    r"(?i)\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3}(?P<value>[A-Za-z0-9+/._~=-]{8,2000})",
    r"(?i)\bbearer\s{1,3}(?P<value>(?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{20,2000}=*)",
    r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,100}:(?P<value>[^\s/@\"'<>]{1,200})@",
    rf"(?i)(?:{_NAMES})\w{{0,20}}[\"']?\s{{0,3}}[:=]\s{{0,3}}(?P<quote>[\"'])(?P<value>[^\"'\s]{{6,300}})(?P=quote)",
    r"\b[A-Z][A-Z0-9_]{0,60}(?:PASSWORD|SECRET|TOKEN|API_KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]{0,20}="
    r"(?P<value>[^\s\"'$`(){}<>]{6,500})",
    r"(?i)\bmachine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<value>\S{1,300})",
)
RULES = tuple(re.compile(pattern) for pattern in (*SHAPES, *VALUES))
HINT = re.compile(  # most text has none of these: one pass over it instead of sixteen
    r"(?i)BEGIN|AKIA|ASIA|gh[pousr]_|github_pat|glpat-|sk-|xox|AIza|hf_|npm_|pypi-|gagar_|eyJ|authorization|bearer|://"
    r"|pass|secret|token|key"
)


@dataclass
class Redactor:
    """Takes secrets out and counts them."""

    count: int = 0

    def text(self, text: str) -> str:
        """Returns: the text, every secret in it replaced by `[secret]`."""
        if not HINT.search(text):
            return text
        for rule in RULES:
            text = rule.sub(self._placeholder(rule), text)
        return text

    def values(self, value: Any) -> Any:
        """Returns: JSON values, each text in them without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.values(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.values(inner) for inner in value]
        return value

    def _placeholder(self, rule: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
        def replaced(found: re.Match[str]) -> str:
            if "value" not in rule.groupindex:
                self.count += 1
                return SECRET
            if found["value"] == SECRET:
                return found[0]
            self.count += 1
            start, end = (at - found.start() for at in found.span("value"))
            return f"{found[0][:start]}{SECRET}{found[0][end:]}"

        return replaced
