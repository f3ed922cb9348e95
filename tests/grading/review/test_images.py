"""Images in events: told by their bytes, bounded, never trusted."""

import struct
from base64 import b64encode

import pytest

from grading.review.pages.images import IMAGE_BYTES, IMAGES_AT_ONCE, Image, cut, sniff, without


def png(width: int = 3, height: int = 2, more: int = 0) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height) + bytes(5 + more)


def url(raw: bytes, said: str = "image/png") -> str:
    return f"data:{said};base64,{b64encode(raw).decode()}"


JPEG = b"\xff\xd8\xff\xe0\x00\x10" + bytes(14) + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 20, 30) + bytes(20)
GIF = b"GIF89a" + struct.pack("<HH", 7, 9) + bytes(20)
WEBP = b"RIFF" + bytes(4) + b"WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


@pytest.mark.parametrize(
    ("raw", "kind", "sides"),
    [
        (png(), "png", (3, 2)),
        (JPEG, "jpeg", (30, 20)),
        (GIF, "gif", (7, 9)),
        (WEBP, "webp", (640, 480)),
        (SVG, "", None),
        (png(0, 5), "", None),
        (png()[:14], "", None),
        (b"\xff\xd8\xff", "", None),
        (b"", "", None),
    ],
)
def test_an_image_is_told_by_its_bytes(raw, kind, sides):
    assert sniff(raw) == (kind, sides)


def test_a_text_is_cut_at_its_images_and_loses_nothing_else():
    before, image, after = cut(f"look: {url(png())} there")
    assert (before, after) == ("look: ", " there")
    assert image == Image("PNG, 3 × 2, 29 bytes", url(png()), 3, 2)
    assert list(cut("data: none here")) == ["data: none here"]
    assert list(cut("")) == [""]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (url(SVG, "image/svg+xml"), "it is no PNG"),
        (url(SVG, "image/png"), "it is no PNG"),
        (url(b"<script>alert(1)</script>" * 4, "text/html"), "it is no PNG"),
        (url(png(50_000, 50_000)), "50,000 × 50,000 pixels"),
        (url(png(more=IMAGE_BYTES)), "the limit is 2,000,000 bytes"),
    ],
)
def test_what_is_not_drawn_is_said(said, why):
    [image] = cut(said)
    assert (image.url, why in image.words) == ("", True)


def test_an_event_draws_so_many_images_and_says_it():
    images = list(cut(url(png()) * (IMAGES_AT_ONCE + 2)))
    assert [bool(image.url) for image in images] == [True] * IMAGES_AT_ONCE + [False] * 2
    assert "draws 8 images" in images[-1].words


def test_the_declared_type_is_never_the_drawn_one():
    [image] = cut(url(GIF, "image/svg+xml"))
    assert image.url.startswith("data:image/gif;base64,")


def test_one_line_of_an_event_says_that_an_image_stands_there():
    assert without(f"shot {url(png())}!") == "shot [data URL, image/png]!"
