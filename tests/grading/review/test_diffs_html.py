"""Rows of a diff: classes, ids, marks, and that nothing a candidate writes becomes markup."""

import dataclasses
from html.parser import HTMLParser

import pytest

from grading.review.diffs import (
    RowOptions,
    closed_words,
    file_head_html,
    file_rows_html,
    parse_patch,
    row_id,
    shared_changes,
)
from grading.review.diffs.python_inks import python_tokens

HEAD = b"diff --git a/x.py b/x.py\nindex 1111111..2222222 100644\n--- a/x.py\n+++ b/x.py\n"
OPTIONS = RowOptions(letter="C", index=0)
ALLOWED = set("header h3 span bdi table caption colgroup col tbody tr td a div button".split())


def file_of(body: bytes, head: bytes = HEAD):
    return parse_patch(head + body).files[0]


class Tags(HTMLParser):
    """Collects tags, attributes and text as a browser would see them."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.attributes, self.seen = set(), set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.seen += data


def test_rows_have_the_classes_and_ids_that_citations_link_to():
    html = file_rows_html(file_of(b"@@ -7,2 +7,2 @@ def f():\n a\n-b\n+c\n"), cited={("new", 8): (2,)}, options=OPTIONS)
    assert '<tr id="C-f0-R7"><td class="ln">7</td><td class="sign"></td>' in html
    assert '<tr class="is-del" id="C-f0-L8"><td class="ln">8</td><td class="sign">−</td>' in html
    assert '<tr class="is-add is-cited" id="C-f0-R8"><td class="ln">8</td><td class="sign">+</td>' in html
    assert '<a class="cite-mark" href="#evidence-2" aria-label="evidence 2">2</a>' in html
    assert row_id("C", 0, "old", 8) == "C-f0-L8"
    assert "def f():" in html


def test_a_citation_of_the_old_side_marks_the_deletion_not_the_new_line_of_that_number():
    html = file_rows_html(file_of(b"@@ -7 +7 @@\n-b\n+c\n"), cited={("old", 7): (1,)}, options=OPTIONS)
    assert 'class="is-del is-cited" id="C-f0-L7"' in html and 'class="is-add" id="C-f0-R7"' in html


def test_script_in_path_content_section_and_options_stays_inert():
    evil = b"<script>alert(1)</script>\"><img src=x onerror=alert(1)>'&lt;"
    head = b'diff --git "a/' + evil.replace(b'"', b'\\"') + b'" "b/' + evil.replace(b'"', b'\\"') + b'"\n'
    head += b"new file mode 100644\nindex 0..1\n--- /dev/null\n+++ " + b'"b/' + evil.replace(b'"', b'\\"') + b'"\n'
    file = file_of(b"@@ -0,0 +1,2 @@ " + evil + b"\n+" + evil + b"\n+" + evil + b"\r\n", head)
    assert file.path == evil.decode()
    options = RowOptions(letter='"><b>', index=0, evidence='"><i>', shares=shared_changes([parse_patch(head)]))
    page = Tags(file_head_html(file) + file_rows_html(file, options=options, cited={("new", 1): ('"><u>',)}))
    assert page.tags <= ALLOWED
    assert page.seen.count("<script>alert(1)</script>") >= 3
    assert not any(name.startswith("on") or name in ("style", "src") for name in page.attributes)


def test_bidi_and_zero_width_characters_are_shown_by_their_code():
    html = file_rows_html(file_of("@@ -0,0 +1 @@\n+a\u202eb\u200bc\rd\x1b[31m\n".encode()), cited={}, options=OPTIONS)
    for hidden in "\u202e\u200b\r\x1b":
        assert hidden not in html
    assert '<span class="hidden-char" title="U+202E RIGHT-TO-LEFT OVERRIDE">⟨U+202E⟩</span>' in html
    assert '<span class="hidden-char" title="U+000D control character">⟨CR⟩</span>' in html and "⟨ESC⟩" in html


def test_an_emoji_is_left_alone():
    html = file_rows_html(file_of("@@ -0,0 +1 @@\n+x = '\u26a0\ufe0f'\n".encode()), cited={}, options=OPTIONS)
    assert "hidden-char" not in html


def test_a_change_of_line_ends_only_is_marked_as_the_change():
    html = file_rows_html(file_of(b"@@ -1 +1 @@\n-a\n+a\r\n"), cited={}, options=OPTIONS)
    assert '<span class="eol word" title="the line ends with CR LF">CRLF</span>' in html


def test_a_missing_newline_has_a_mark():
    html = file_rows_html(file_of(b"@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"), cited={}, options=OPTIONS)
    assert ">no newline</span>" in html


def test_changed_words_and_syntax_share_one_span():
    html = file_rows_html(
        file_of(b"@@ -1 +1 @@\n-    return old + 1\n+    return new + 1\n"), cited={}, options=OPTIONS
    )
    assert '<span class="tok-k">return</span> <span class="word">old</span> + 1' in html
    assert '<span class="word">new</span>' in html and 'class="code i0"' in html and '<tbody class="g4">' in html


def test_colours_never_change_the_text():
    lines = ["a = '''x", "\ufeffy\t\x00z", "q''' # \u2028", "def f(\x0c):"]
    body = b"@@ -0,0 +1,4 @@\n" + b"".join(b"+" + line.encode() + b"\n" for line in lines)
    coloured = Tags(file_rows_html(file_of(body), cited={}, options=OPTIONS)).seen
    plain = Tags(file_rows_html(file_of(body), cited={}, options=dataclasses.replace(OPTIONS, highlight=False))).seen
    assert coloured == plain


def test_the_margin_counts_the_candidates_that_make_the_same_change():
    patches = [parse_patch(HEAD + b"@@ -1 +1,2 @@\n-a\n+b\n+" + own + b"\n") for own in (b"p", b"q", b"r")]
    options = RowOptions(letter="C", index=0, shares=shared_changes(patches))
    html = file_rows_html(patches[0].files[0], cited={}, options=options)
    assert html.count('title="3 of 3 candidates make this change">3</td>') == 2
    assert '<td class="share" title="1 of 3 candidates make this change"></td>' in html


def test_a_hunk_that_half_of_the_candidates_share_folds_unless_it_is_cited():
    patches = [parse_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b\n")] * 2
    options = RowOptions(letter="C", index=0, shares=shared_changes(patches), fold=True)
    file = patches[0].files[0]
    assert "2 changed lines · same in 2 of 2" in file_rows_html(file, cited={}, options=options)
    assert "fold-toggle" not in file_rows_html(file, cited={("old", 1): (1,)}, options=options)


def test_a_large_file_stays_closed_behind_its_size():
    file = file_of(b"@@ -0,0 +1,3000 @@\n" + b"+x\n" * 3_000)
    assert closed_words(file) == "3,000 changed lines, 6 kB"
    assert '<span class="adds">+3,000</span>' in file_head_html(file)


def test_a_file_of_100_000_lines_is_drawn_a_window_at_a_time():
    file = file_of(b"@@ -0,0 +1,100000 @@\n" + b"+x = 1\n" * 100_000)
    html = file_rows_html(file, cited={}, options=dataclasses.replace(OPTIONS, first_row=50_000, max_rows=1_000))
    assert 'id="C-f0-R50001"' in html and 'id="C-f0-R51000"' in html and 'id="C-f0-R51001"' not in html
    assert '<tr data-next="51000"><td colspan="4">⋯ 49,000 more lines</td></tr>' in html


def test_a_line_of_5_mb_is_clipped_and_says_so():
    file = file_of(b"@@ -1 +1 @@\n-" + b"a" * 5_000_000 + b"\n+" + b"b" * 5_000_000 + b"\n")
    html = file_rows_html(file, options=OPTIONS, cited={})
    assert len(html) < 20_000 and "… 4,998,000 more characters" in html


def test_utf16_lines_are_shown_as_text():
    new = "h\u00e9\nwo\n".encode("utf-16")
    body = b"@@ -0,0 +1,3 @@\n+" + new.replace(b"\n", b"\n+") + b"\n"
    page = Tags(file_rows_html(file_of(body), cited={}, options=OPTIONS))
    assert "hé" in page.seen and "wo" in page.seen


def test_a_merge_shows_the_signs_of_both_parents():
    data = b"diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,2 +1,2 @@@\n  both\n -second\n++new\n"
    html = file_rows_html(parse_patch(data).files[0], cited={}, options=OPTIONS)
    assert '<td class="sign">++</td>' in html and '<td class="sign"> −</td>' in html


PYTHON = (
    "@wraps(f)\ndef run(self, items=None):  # why\n    return len(items) + self.len\n"
    'text = rf"a{x}" + \'it\\\'s\' + """two\nlines"""\nopen = \'unfinished\nclass A: pass\n'
)
INKED = {
    "tok-n": ["@wraps", "run", "self", "len", "self", "open", "A"],
    "tok-k": ["def", "None", "return", "class", "pass"],
    "tok-c": ["# why"],
    "tok-s": ['rf"a{x}"', "'it\\'s'", '"""two\nlines"""', "'unfinished"],
}


def test_python_is_inked_by_what_its_words_are():
    tokens = list(python_tokens(PYTHON))
    assert "".join(text for _, text in tokens) == PYTHON
    assert {ink: [text for name, text in tokens if name == ink] for ink in INKED} == INKED


@pytest.mark.parametrize("hostile", ['"' * 60_000, "rb" * 30_000, '"""\\' * 15_000, " " * 60_000, "@" * 60_000])
def test_no_text_makes_inking_slow(hostile):
    assert "".join(text for _, text in python_tokens(hostile + "\\")) == hostile + "\\"


def test_a_giant_line_does_not_cost_its_neighbours_their_colours():
    html = file_rows_html(file_of(b"@@ -0,0 +1,2 @@\n+return 1\n+" + b"x" * 1_500 + b"\n"), cited={}, options=OPTIONS)
    assert '<span class="tok-k">return</span>' in html and "x" * 1_500 in html


def test_colouring_stops_when_time_is_up_and_the_text_stays():
    body = b"@@ -0,0 +1,200 @@\n" + b"+    return 1234567890\n" * 200
    looks = iter([False, False, True])
    late = file_rows_html(
        file_of(body), cited={}, options=dataclasses.replace(OPTIONS, is_late=lambda: next(looks, True))
    )
    in_time = file_rows_html(file_of(body), cited={}, options=dataclasses.replace(OPTIONS, is_late=lambda: False))
    assert late.count("tok-k") == 0 and late.count("return") == 200
    assert in_time.count("tok-k") == 200
    assert "tok-k" not in file_rows_html(file_of(body), cited={}, options=OPTIONS)  # 4,600 characters, no clock


def test_split_puts_a_deletion_beside_what_it_became_and_numbers_both_sides():
    body = b"@@ -3,3 +3,4 @@\n a\n-value = compute(a)\n-gone\n+# new comment here\n+value = compute(b)\n+more\n"
    html = file_rows_html(file_of(body), cited={("old", 4): (7,)}, options=dataclasses.replace(OPTIONS, view="split"))
    assert [Tags(row).seen for row in html.split("<tr>")[1:]] == [
        "3a3a",
        "4+# new comment here",
        "4−7value = compute(a)5+value = compute(b)",
        "5−gone6+more",
    ]
    assert html.count(' id="C-f0-L4"') == html.count(' id="C-f0-R4"') == 1
    assert 'class="code i0 is-del is-cited old" id="C-f0-L4"' in html
    assert html.count('class="nothing"') == 1


def test_every_line_has_one_row_or_half_in_split():
    body = b"@@ -1,4 +1,4 @@\n a\n+x\n b\n-y\n+z\n-c\n"
    html = file_rows_html(file_of(body), cited={}, options=dataclasses.replace(OPTIONS, view="split"))
    assert html.count('<td class="code') == 2 * 2 + 4


def test_unusual_hunks_come_first_where_shared_ones_fold():
    shared, own = b"@@ -1 +1 @@\n-a\n+b\n", b"@@ -9 +9 @@\n-p\n+q\n"
    patches = [parse_patch(HEAD + shared + own)] + [parse_patch(HEAD + shared)] * 3
    options = RowOptions(letter="C", index=0, shares=shared_changes(patches), fold=True)
    html = file_rows_html(patches[0].files[0], cited={}, options=options)
    assert html.index('id="C-f0-R9"') < html.index("same in 4 of 4") < html.index('id="C-f0-R1"')
    html = file_rows_html(patches[0].files[0], cited={}, options=dataclasses.replace(options, fold=False))
    assert html.index('id="C-f0-R1"') < html.index('id="C-f0-R9"')
