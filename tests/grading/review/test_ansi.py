"""What a terminal would obey never reaches the page."""

import pytest

from grading.review.pages.ansi import plain, to_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("\x1b[31mred\x1b[0m!", '<span class="ansi-red">red</span>!'),
        ("\x1b[1;32;41mx\x1b[m", '<span class="ansi-bold ansi-green ansi-bg-red">x</span>'),
        ("\x1b[38;5;4mx\x1b[38;2;1;2;3my", '<span class="ansi-blue">x</span>y'),
        ("a\tb", "a\tb"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07", "click"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x1b]52;c;cGF5bG9hZA==\x07x", "x"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1b[2J\x1b[10;5Hx\x1b[?25l", "x"),
        ("\x1b(Bx\x1b=", "x"),
        ("\x9b31mx", '<span class="ansi-red">x</span>'),
        ("a\r\nb", "a\nb"),
    ],
)
def test_colours_become_classes_and_the_rest_is_taken_out(text, html):
    assert to_html(text) == html


def test_progress_is_folded_to_its_last_state_and_says_so():
    html = to_html("10 %\r50 %\r100 %\ndone")
    assert "10 %" not in html and "100 %" in html and "2 earlier states" in html
    assert plain("10 %\r50 %\r100 %\n") == "100 %\n"


def test_what_hides_is_named():
    assert "U+202E" in to_html("a\u202eb") and "⟨BS⟩" in to_html("a\x08b") and "⟨NUL⟩" in to_html("\x00")


def test_an_unfinished_sequence_ends_with_its_line():
    assert to_html("\x1b]8;;http://x\nnext") == "\nnext"
    assert to_html("\x1b[31") == "" and to_html("\x1b") == ""


def test_megabytes_of_escapes_end_in_time_that_grows_with_their_size():
    plain("\x1b]" + "x" * 5_000_000)  # a square would outlast the suite's own time limit
    plain("\x1b[" * 1_000_000)
