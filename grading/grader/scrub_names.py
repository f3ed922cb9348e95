"""What betrays who made a candidate: names of models, makers and agents, as patterns. Core.

Every pattern stays on one line and is linear on hostile text: bounded repeats, one start for each token.
"""

import re

_VERSION = r"(?:-?v?\d[\w.]{0,15}(?<!\.))?(?:[-.]\d\w{0,15}|:\d{1,3}[bB]\b|-[A-Za-z][A-Za-z0-9]{0,15}){0,10}"
_SPACED = r"(?:\ (?:v?\d{1,3}(?:\.\d{1,2})?[a-zA-Z]?|Opus|Sonnet|Haiku|Pro|Flash|Ultra|Turbo|Mini|Coder|Code)\b){0,3}"

# Never a common word or a usual name in code: taken with and without a version, in any case of letters.
PLAIN_MODELS = (
    "claude", "chatgpt", r"gpt[- ]?(?:[345]\w{0,8}|oss)", "qwen", "qwq", "deepseek", "mixtral", "codestral", "devstral",
    "chatglm", "minimax-m", "nemotron", "starcoder", "codellama", "wizardcoder", "internlm", "hunyuan", "doubao",
    "kimi", "magistral", "codegemma", "palm-2", "text-davinci", "davinci-00",
)  # fmt: skip
# Also words or parts of code: only with a version behind them, or with a capital where a sentence has it.
VERSIONED_MODELS = ("llama", "gemini", "gemma", "grok", "phi", "glm", "yi", "mistral", "granite", "command-r", "codex")
CAPITAL_MODELS = ("LLaMA", "Llama", "Gemini", "Gemma", "Grok", "Codex", "Copilot", "Sonnet", "Mistral")
MAKERS = ("anthropic", "openai", "moonshot ?ai", "mistral ?ai", "zhipu ?ai", "google deepmind", "alibaba cloud", "xAI")
AGENTS = (
    "(?:mini-)?swe-?agent", "openhands", "opendevin", "codeact(?:agent)?", "autocoderover", "agentless", "moatless",
    "aider", "claude-code", "github copilot", "codex-cli", "gemini-cli", "qwen-code", "acr-run",
)  # fmt: skip
_SORTS = "large|small|medium|mini|nano|lite|pro|plus|max|flash|ultra|fast|code|coder|chat|instruct|cli"
_O_SERIES = r"o[134](?:-(?:mini|pro|preview|high|low|medium))"

_STARTS = r"(?<![\w$@])(?<!import\ )(?<!from\ )(?<!packages/)(?<!modules/)(?<!\w\.)"  # an import is code
_ENDS = r"(?!\w|\(|(?:\.[A-Za-z_]\w{0,40}){1,4}\()"  # so is a call
_CAPITALS = "|".join(CAPITAL_MODELS)


def _any(names: tuple[str, ...]) -> str:
    return "|".join(name.replace(" ", r"\ ") for name in names)


MODEL = re.compile(
    rf"""{_STARTS}(?:
        (?i:{_any(PLAIN_MODELS)}){_VERSION}{_SPACED}
      | (?i:{_any(VERSIONED_MODELS)})(?i:[-\ ]?v?\d[\w.]{{0,15}}(?<!\.)|-(?:{_SORTS})\b){_VERSION}{_SPACED}
      | (?:{_CAPITALS}){_VERSION}{_SPACED}
      | {_O_SERIES}
    ){_ENDS}""",
    re.VERBOSE,
)
MAKER = re.compile(rf"{_STARTS}(?i:{_any(MAKERS)}){_ENDS}", re.VERBOSE)
AGENT = re.compile(rf"{_STARTS}(?i:{_any(AGENTS)})(?:[-\ ]v?\d[\d.]{{0,8}})?{_ENDS}", re.VERBOSE)

# Inside a file's name an underscore is no letter: `fix_by_claude.py`, `.aider.conf.yml`, `CLAUDE.md`.
IN_NAME = re.compile(
    rf"(?<![A-Za-z])(?i:{_any(PLAIN_MODELS)}|{_any(VERSIONED_MODELS)}|{_any(AGENTS)}|copilot|anthropic|openai)"
    r"(?:[-_.]?\d[\d.]{0,5}(?<!\.))?(?![a-z])",
    re.VERBOSE,
)

_WHO = rf"(?:{_any(PLAIN_MODELS)}|{_any(VERSIONED_MODELS)}|{_any(MAKERS)}|{_any(AGENTS)}|copilot|sonnet|opus|bard)"
# Words in which an author names itself: also in a string or a docstring, where bare names are left as code.
MADE_BY = re.compile(
    rf"""(?i:\b(?:(?:written|generated|created|authored|made|fixed|implemented|produced|solved|patched|suggested
        |assisted|trained|developed)\ (?:by|with|using)|courtesy\ of|i\ am|i['’]m|this\ is|my\ name\ is)
        \ (?:the\ |an?\ )?(?:ai\ |model\ |assistant\ |agent\ ){{0,2}})(?P<name>(?i:{_WHO}){_VERSION}{_SPACED})(?!\w)""",
    re.VERBOSE,
)

BARE = (MODEL, MAKER, AGENT)  # a task that is about one of these names keeps it


def topics(text: str) -> frozenset[str]:
    """Returns: the names a task is about, as the first word of each, in small letters."""
    return frozenset(topic(found[0]) for pattern in BARE for found in pattern.finditer(text))


def topic(name: str) -> str:
    """Returns: the first word of a name, in small letters."""
    return re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]
