"""docs/protocol.md names every message and every close code, as the code means them."""

import re
from pathlib import Path
from typing import get_args

from gagar_web import api_urls
from training_bridge.protocol.messages import FATAL, CloseCode, Estimator, JobMessage, ServerMessage

PAGE = (Path(__file__).parents[3] / "docs/protocol.md").read_text()


def test_the_table_of_close_codes_is_that_of_the_code():
    rows = re.findall(r"^\| (\d{4}) \| (\w+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [row[:3] for row in rows] == [(str(int(c)), c.name, c.meaning) for c in sorted(CloseCode)]
    assert {int(code) for code, _, _, does in rows if does == "stops"} == FATAL


def test_every_message_and_every_field_of_the_estimator_is_named():
    table = PAGE.partition("## Messages")[2].partition("## Close codes")[0]
    for message in {*get_args(JobMessage), *get_args(ServerMessage)}:
        assert f"`{message.__struct_config__.tag}`" in table, message
    assert f"`{', '.join(Estimator.__struct_fields__)}`" in table or all(
        re.search(rf"\b{name}\b", table) for name in Estimator.__struct_fields__
    )


def test_every_rest_twin_is_named():
    twins = [p.pattern._route for p in api_urls.urlpatterns if "training_bridge.api" in str(p.callback.__module__)]
    for route in twins:
        end = route.partition("<slug:run>/")[2].replace("<int:n>", "<n>")
        assert f"…/{end}" in PAGE, end
