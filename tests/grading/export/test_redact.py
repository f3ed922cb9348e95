"""Planted keys are taken out wherever they stand; code that only talks about keys stays as it is."""

import pytest

from grading.export.redact import SECRET, Redactor

PLANTED = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "11ABCDE0Y0" * 4,
    "gitlab": "glpat-" + "x1Y2z3" * 4,
    "openai": "sk-proj-" + "AbC123_-" * 5,
    "anthropic": "sk-ant-" + "api03-AbC123" * 3,
    "slack": "xoxb-" + "1234567890-abcdef",
    "google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"[:35],
    "hugging face": "hf_" + "AbCdEfGhIj" * 3,
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" * 2,
    "gagar": "gagar_" + "AbC-123_xy" * 4,
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----",
}
WITH_VALUE = {
    "header": ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
    "url": ("git clone https://bob:hunter2secret@example.org/x.git", "hunter2secret"),
    "quoted": ('password = "hunter2secret"', "hunter2secret"),
    "json": ('{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
    "env": ("export DB_PASSWORD=hunter2secret", "hunter2secret"),
    "netrc": ("machine example.org login bob password hunter2secret", "hunter2secret"),
}
PLAIN = [
    "token = get_token(request)",
    'raise ValueError("no password given")',
    "def check_password(self, password: str) -> bool:",
    'self.assertEqual(form["password"], other)',
    "https://example.org/a/b?c=d",
    "key = (group.task, group.step)",
    "the bearer of this letter",
    'API_KEY = os.environ["API_KEY"]',
    "sk-learn and hf_hub are libraries",
    "PASSWORD=${DB_PASSWORD}",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
]


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("around", ["{}", "x = '{}'  # note", "$ env\nA=1\nKEY={}\nB=2", '{{"a": "{}"}}'])
def test_a_planted_key_is_gone_and_what_stands_around_it_stays(name, around):
    redactor = Redactor()
    got = redactor.text(around.format(PLANTED[name]))
    assert PLANTED[name] not in got and SECRET in got and redactor.count >= 1
    head = around.partition("{}")[0].replace("{{", "{")
    assert got.startswith(head)


@pytest.mark.parametrize("name", WITH_VALUE)
def test_a_value_beside_a_telling_name_is_gone_and_the_name_stays(name):
    text, value = WITH_VALUE[name]
    assert Redactor().text(text) == text.replace(value, SECRET)


@pytest.mark.parametrize("text", PLAIN)
def test_code_that_only_speaks_of_keys_is_untouched(text):
    assert Redactor().text(text) == text


def test_it_reaches_into_values_and_a_second_time_changes_nothing():
    redactor = Redactor()
    got = redactor.values({"a": [f"x {PLANTED['github']}", 3, None], PLANTED["aws"]: True})
    assert got == {"a": [f"x {SECRET}", 3, None], SECRET: True}
    assert redactor.count == 2
    again = Redactor()
    assert again.values(got) == got and again.count == 0


def test_hostile_text_costs_no_more_than_its_length():
    """Nothing nests: a megabyte of beginnings without ends is read in moments."""
    import time

    started = time.process_time()
    for text in ("-----BEGIN PRIVATE KEY-----" * 4_000, "password = '" * 30_000, "eyJ" * 100_000, "http://a:" * 40_000):
        Redactor().text(text)
    assert time.process_time() - started < 5
