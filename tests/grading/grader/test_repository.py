"""The repository at the base commit: from a bundle, an archive or a git URL; each rollout's version; who attacks it."""

import io
import os
import socket
import subprocess
import threading
import time
import zipfile

import pytest

from grading.errors import NotFound
from grading.grader import git, repository, workspace
from grading.grader.repository import NoRepository, base_of
from tests.factories import make_task
from tests.grading.grader.repositories import (
    FILES,
    bundle,
    make_repository,
    names,
    opened,
    stored_task,
    tar,
)
from tests.grading.grader.repositories import git as plain_git

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_data(settings, tmp_path):
    settings.GAGAR_DATA_DIR = tmp_path / "data"


def test_a_bundle_an_archive_and_a_zip_of_one_tree_show_the_same_files(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as made:
        for path, text in FILES.items():
            made.writestr(f"r-{commit}/{path}", text)
    sent = [bundle(folder), tar(), tar(mode="w"), tar(mode="w:xz"), zipped.getvalue()]
    trees = {base_of(stored_task(data, base_commit=commit)).tree for data in sent}
    assert trees == {plain_git(folder, "rev-parse", "HEAD^{tree}")}


def test_without_a_repository_a_grading_goes_on_and_says_why():
    with opened(make_task()) as ws:
        assert ws.repository is None
        assert ws.why_no_repository == "this task names no repository"
        assert ws.tree("A") is None
        with pytest.raises(NotFound, match="names no repository"):
            ws.list_files()
    with opened(stored_task(b"neither this nor that")) as ws:
        assert "no git bundle, tar or zip" in ws.why_no_repository


def test_a_commit_that_is_not_there_is_said_and_not_looked_for_again(tmp_path):
    folder, _ = make_repository(tmp_path / "r")
    task = stored_task(bundle(folder), base_commit="1" * 40)
    with pytest.raises(NoRepository, match="does not have the base commit"):
        base_of(task)
    with pytest.raises(NoRepository, match="does not have the base commit"):
        base_of(task)
    for wanted in ("--help", "-h", "HEAD:app.py", "@{-1}", ":/base"):
        task.base_commit = wanted
        try:
            assert base_of(task).tree
        except NoRepository:
            pass


def test_a_mirror_that_was_changed_is_built_anew(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    task = stored_task(bundle(folder), base_commit=commit)
    base = base_of(task)
    pack = next(base.objects.rglob("*.pack"))
    good = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(good[:-5] + b"evil!")
    assert not base.is_intact()
    again = base_of(task)
    assert again == base
    assert again.is_intact()
    assert next(again.objects.rglob("*.pack")).read_bytes() == good


def test_two_workers_build_one_mirror(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    task = stored_task(bundle(folder), base_commit=commit)
    task.repository.sha256  # noqa: B018 - read here: threads share no connection
    got = []
    threads = [threading.Thread(target=lambda: got.append(base_of(task))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    assert len(set(got)) == 1


@pytest.fixture
def daemon(tmp_path):
    """A real git server on this machine; gives its URL and what it serves."""
    served = tmp_path / "served"
    folder, commit = make_repository(served / "r")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all", f"--base-path={served}", str(served)],
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield f"git://127.0.0.1:{port}/r", folder, commit
    os.killpg(process.pid, 15)
    process.wait()


def test_a_git_url_on_an_allowed_host_is_fetched_once(daemon, settings):
    url, _, commit = daemon
    task = make_task(repository_url=url, base_commit=commit)
    with pytest.raises(NoRepository, match="not one of GAGAR_GIT_HOSTS"):
        base_of(task)
    settings.GAGAR_GIT_HOSTS = ["127.0.0.1"]
    assert base_of(task).commit == commit
    with opened(task) as ws:
        assert names(ws) == sorted(FILES)
        assert ws.tree("A") is not None


def test_an_older_commit_is_found_where_the_server_gives_none_by_id(daemon, settings):
    settings.GAGAR_GIT_HOSTS = ["127.0.0.1"]
    url, folder, commit = daemon
    (folder / "later.txt").write_text("later")
    plain_git(folder, "add", "-A")
    plain_git(folder, "commit", "-q", "-m", "later")
    with opened(make_task(repository_url=url, base_commit=commit)) as ws:
        assert names(ws) == sorted(FILES)


def test_no_other_protocol_and_no_option_gets_through(tmp_path, settings):
    settings.GAGAR_GIT_HOSTS = ["127.0.0.1", ""]
    make_repository(tmp_path / "r")
    marker = tmp_path / "pwned"
    for url in (
        f"file://{tmp_path}/r", str(tmp_path / "r"), f"ext::sh -c touch% {marker}", f"--upload-pack=touch {marker}",
        "http://127.0.0.1:1/r", f"git://127.0.0.1/--upload-pack=touch%20{marker}", "https://127.0.0.1:1/none",
    ):  # fmt: skip
        with pytest.raises(NoRepository):
            base_of(make_task(repository_url=url, base_commit="1" * 40))
    for url in (
        f"file://{tmp_path}/r",
        "http://127.0.0.1:1/r",
        "https://127.0.0.1:1/r",
        "git://127.0.0.1:1/r",
        "ssh://x/r",
    ):
        with pytest.raises(git.GitFailed, match="not allowed"):
            git.run("ls-remote", "--", url)
    assert not marker.exists()


def test_git_ends_in_time_and_prints_no_more_than_it_may(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"git://127.0.0.1:{silent.getsockname()[1]}/r"
        with pytest.raises(git.GitFailed, match="took longer"):
            git.run("ls-remote", "--", url, settings={"protocol.git.allow": "always"}, timeout_s=1)
    folder, _ = make_repository(tmp_path / "r", {"long.txt": "x" * 100_000})
    with pytest.raises(git.GitFailed, match="printed too much"):
        git.run("cat-file", "blob", "HEAD:long.txt", git_dir=folder / ".git", output_bytes=1000)
    assert len(git.run("cat-file", "blob", "HEAD:long.txt", git_dir=folder / ".git", output_bytes=9, is_cut=True)) == 9


def test_nothing_of_this_machines_settings_or_of_the_repositorys_hooks_runs(tmp_path, monkeypatch):
    marker = tmp_path / "pwned"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[core]\n\tfsmonitor = "touch {marker}"\n\thooksPath = {home}\n[alias]\n\tx = y\n'
    )
    (home / "post-index-change").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (home / "post-index-change").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {marker}")
    monkeypatch.setenv("SECRET", "canary")
    folder, commit = make_repository(tmp_path / "r")
    with opened(stored_task(bundle(folder), base_commit=commit)) as ws:
        assert ws.tree("A") is not None
    assert not marker.exists()
    assert git.run("config", "--list", "--show-origin").decode().count("file:") == 0


def test_leftovers_of_killed_workers_are_swept(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    task = stored_task(bundle(folder), base_commit=commit)
    with opened(task) as ws:
        ws.tree("A")
        left = workspace.home() / "group-0-killed"
        (left / "tree").mkdir(parents=True)
        (left / "tree" / "l").symlink_to(ws.folder)
        os.utime(left, (1, 1))
        half = repository.home() / "building-killed"
        half.mkdir()
        os.utime(half, (1, 1))
        assert workspace.sweep(older_than_s=60) == 2
        assert not left.exists()
        assert not half.exists()
        assert ws.tree("A").exists()


def test_a_machine_without_git_grades_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with opened(stored_task(tar())) as ws:
        assert ws.repository is None
        assert "not found" in ws.why_no_repository
