"""What a candidate may try to look as if it passed (S8). What counts is what our runner records, never a print."""

import pytest

from grading.grader.sandbox import Expect, Limits

CHECK = """
    import app

    def test_answer():
        assert app.answer() == 42
"""


def test_a_right_and_a_wrong_answer(box):
    box.write(app="def answer(): return 42")
    right = box.tests(CHECK)
    assert (right.outcome, right.words, right.sandbox) == ("passed", "1 of 1 tests passed", box.name)
    box.write(app="def answer(): return 41")
    wrong = box.tests(CHECK)
    assert wrong.outcome == "failed" and "test_answer failed" in wrong.words
    assert b"assert app.answer() == 42" in wrong.output


def test_methods_of_a_test_case_run_with_their_set_up_and_nothing_of_it_is_printed_as_ours(box):
    box.write(app="def answer(): print('1 passed'); return 42")
    ran = box.tests("""
        import unittest, app
        class Answer(unittest.TestCase):
            @classmethod
            def setUpClass(cls): cls.wanted = 42
            def setUp(self): self.got = app.answer()
            def test_answer(self): self.assertEqual(self.got, self.wanted)
        class TestPlain:
            def test_answer(self): assert app.answer() == 42
    """)
    assert (ran.outcome, ran.output) == ("passed", b"1 passed\n1 passed\n")


FORGERIES = {
    "printed summary": "print('1 passed in 0.01s'); print('OK')\ndef answer(): return 0",
    "os._exit at import": "import os; print('1 passed', flush=True); os._exit(0)",
    "os._exit in the call": "import os\ndef answer(): print('1 passed', flush=True); os._exit(0)",
    "sys.exit at import": "import sys; sys.exit(0)",
    "sys.exit in the call": "import sys\ndef answer(): sys.exit(0)",
    "atexit": "import atexit, os\natexit.register(lambda: (print('1 passed'), os._exit(0)))\ndef answer(): return 0",
    "exec of another program": "import os\ndef answer(): os.execv('/bin/true', ['true'])",
    "killed by itself": "import os\ndef answer(): os.kill(os.getpid(), 15)",
    "fork that goes on": "import os\ndef answer():\n    if os.fork(): os._exit(0)\n    return 42",
    "skip": "import unittest\ndef answer(): raise unittest.SkipTest('not today')",
    "endless thread": """
        import threading, time
        threading.Thread(target=time.sleep, args=(99,)).start()
        def answer(): return 0""",
    "assert methods replaced": """
        import unittest
        unittest.TestCase.assertEqual = lambda *a, **k: None
        def answer(): return 42""",
    "builtins replaced": "import builtins\nbuiltins.isinstance = lambda *a: True\ndef answer(): return 42",
    "unittest.main replaced": "import unittest\nunittest.main = lambda *a, **k: None\ndef answer(): return 0",
    "result classes replaced": """
        import unittest
        unittest.TextTestResult.addFailure = unittest.TextTestResult.addError = lambda *a: None
        def answer(): return 0""",
    "excepthook": "import sys\nsys.excepthook = lambda *a: None\ndef answer(): return 0",
    "traceback replaced": "import traceback, os\ntraceback.print_exc = lambda *a: os._exit(0)\ndef answer(): return 0",
    "records printed": """
        import json, sys
        for mark in ('', 'token ', '0' * 32 + ' '):
            print(mark + json.dumps({'test': 'test_answer', 'how': 'passed'}))
            print(mark + json.dumps({'end': 'complete'}), flush=True)
        def answer(): return 0""",
    "records on every open file": """
        import json, os
        for fd in range(1, 256):
            for mark in ('', '0' * 32 + ' '):
                for record in ({'test': 'test_answer', 'how': 'passed'}, {'end': 'complete'}):
                    try: os.write(fd, (mark + json.dumps(record) + '\\n').encode())
                    except OSError: pass
        os._exit(0)""",
    "records on the first process's stdout": """
        import json, os
        for pid in [name for name in os.listdir('/proc') if name.isdigit()] :
            for fd in range(0, 64):
                try:
                    if int(pid) != os.getpid():
                        file = os.open(f'/proc/{pid}/fd/{fd}', os.O_WRONLY | os.O_NONBLOCK)
                        os.write(file, b'HERE ' + json.dumps({'end': 'complete'}).encode())
                        print('reached', pid, fd, flush=True)
                except OSError: pass
        def answer(): return 0""",
    "memory of the first process": """
        import os
        for pid in (1, os.getppid()):
            for name in ('mem', 'environ', 'maps', 'auxv'):
                try:
                    if open(f'/proc/{pid}/{name}', 'rb').read(1): print('reached', name, flush=True)
                except OSError: pass
        def answer(): return 0""",
    "first process traced": """
        import ctypes
        if not ctypes.CDLL(None).ptrace(16, 1, 0, 0): print('reached by tracing', flush=True)
        def answer(): return 0""",
    "runner replaced on disk": """
        import os
        for name in ('runner.py', 'job.json', 'token', 'tree/check_it.py'):
            try: os.unlink(f'/check/{name}')
            except OSError: pass
            open(f'/check/{name}', 'w').write('print("1 passed")')
        def answer(): return 0""",
    "first process killed": "import os\nfor s in (15, 9, 2, 1): os.kill(1, s)\ndef answer(): return 0",
}


def never_passes(box, forgery):
    box.write(app=forgery)
    ran = box.tests(CHECK)
    assert ran.outcome in ("failed", "unknown", "killed")
    assert b"reached" not in ran.output


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_never_passes(bubblewrap_box, forgery):
    never_passes(bubblewrap_box, forgery)


@pytest.mark.alone
@pytest.mark.parametrize("forgery", [name for name in FORGERIES if "record" in name or "process" in name])
def test_a_forgery_of_the_runners_channel_never_passes_in_docker_either(docker_box, forgery):
    never_passes(docker_box, FORGERIES[forgery])


def test_files_that_python_loads_by_itself_are_not_loaded_from_the_tree(bubblewrap_box):
    traps = "open('/check/tmp/trap', 'a').write(__name__); import os; os._exit(0)"
    names = ("sitecustomize", "usercustomize", "conftest", "unittest", "json", "os", "select", "ctypes", "traceback")
    bubblewrap_box.write(app="def answer(): return 42", **dict.fromkeys(names, traps))
    (bubblewrap_box.tree / "x.pth").write_text("import os; os._exit(0)")
    (bubblewrap_box.tree / "pytest.ini").write_text("[pytest]\naddopts = --collect-only")
    ran = bubblewrap_box.tests(
        CHECK + "\n    import os\n    def test_trap(): assert not os.path.exists('/check/tmp/trap')"
    )
    assert (ran.outcome, ran.words) == ("passed", "2 of 2 tests passed")


def test_a_module_of_the_tree_in_place_of_one_that_judges_is_said(bubblewrap_box):
    bubblewrap_box.write(app="def answer(): return 0", pytest="class raises:\n    def __init__(self, *a): pass")
    ran = bubblewrap_box.tests("import pytest, app\ndef test_answer(): pytest.raises(ValueError)")
    assert ran.outcome == "unknown" and "in place of pytest" in ran.words


def test_the_graders_files_stand_in_place_of_the_trees(box):
    box.write(app="def answer(): return 41", check_it="def test_answer(): pass", tests__data="x = 1")
    assert box.tests(CHECK).outcome == "failed"
    (box.tree / "sub").symlink_to("/usr")  # a link where the grader's file needs a folder
    ran = box.ask(argv=("cat", "sub/lib/new.txt"), files={"sub/lib/new.txt": b"mine"}, expect=Expect(stdout="mine"))
    assert ran.outcome == "passed"


@pytest.mark.parametrize(
    ("code", "expect", "word"),
    [
        ("import app; print(app.answer())", {"stdout": "42"}, "passed"),
        ("import app; print(app.answer())", {}, "unknown"),
        ("import os; print('1 passed', flush=True); os._exit(0)", {"contains": "1 passed"}, "unknown"),
        ("import os; os._exit(0)", {"stdout": "42"}, "failed"),
        ("import sys; print('42', file=sys.stderr)", {"contains": "42"}, "failed"),
        ("raise SystemExit(137)", {"contains": "42"}, "killed"),
        ("import sys; print(sys.stdin.read()[::-1])", {"stdout": "olleh"}, "passed"),
    ],
)
def test_a_command_is_judged_by_its_stdout_outside_the_sandbox(bubblewrap_box, code, expect, word):
    bubblewrap_box.write(app="def answer(): return 42")
    assert bubblewrap_box.python(code, expect=Expect(**expect), stdin=b"hello").outcome == word


def test_records_are_read_whole_however_little_output_is_kept(bubblewrap_box):
    many = "".join(f"def test_{n}(): print('x' * 100)\n" for n in range(50))
    ran = bubblewrap_box.tests(many, limits=Limits(output_bytes=100))
    assert (ran.outcome, ran.words, len(ran.output), ran.is_truncated) == ("passed", "50 of 50 tests passed", 100, True)


def test_what_does_not_load_or_does_not_run_is_unknown(bubblewrap_box):
    assert "did not load: ModuleNotFoundError" in bubblewrap_box.tests("import nothing\ndef test_x(): pass").words
    ran = bubblewrap_box.tests("def test_x():\n    yield 1")
    assert (ran.outcome, "it returned generator" in ran.words) == ("unknown", True)
    ran = bubblewrap_box.ask(argv=("no-such-program",))
    assert (ran.outcome, ran.words) == ("unknown", "no-such-program is not in the sandbox")
