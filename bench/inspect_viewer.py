"""Inspect's viewer on a transcript of ours, as a peer of the trajectory view.

python -m bench.inspect_viewer OUT writes the log; it runs in the environment that has Inspect.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

START_S = 120
LOG = "large.eval"


class InspectViewer:
    """Inspect serving one log of one sample; `url` is where its messages are shown."""

    def __init__(self, python: Path, folder: Path):
        self.python, self.folder = python, folder
        command = [str(python), "-m", "bench.inspect_viewer", str(folder / LOG)]
        subprocess.run(command, check=True, cwd=Path(__file__).resolve().parent.parent, timeout=START_S)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/#/logs/{LOG}/samples/sample/1/1/messages"

    def __enter__(self):
        command = [str(self.python.parent / "inspect"), "view", "start", "--log-dir", str(self.folder)]
        command += ["--port", str(self.port)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=os.environ | {"HOME": str(self.folder)}, **quiet)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                urlopen(f"http://127.0.0.1:{self.port}/", timeout=5).close()
                return self
            except (URLError, OSError):
                time.sleep(0.2)
        self.__exit__()
        raise RuntimeError(f"Inspect's viewer did not answer within {START_S} s")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)


def write_log(out: str) -> None:
    """The same text that our rollout holds, message by message."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

    from bench.trajectories import large_events

    said = [(ChatMessageUser if n % 2 else ChatMessageAssistant, e["text"]) for n, e in enumerate(large_events())]
    messages = [kind(content=text) for kind, text in said]
    sample = EvalSample(id="1", epoch=1, input="fix it", target="", messages=messages)
    dataset = EvalDataset(name="bench", samples=1, sample_ids=["1"])
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="bench", dataset=dataset, model="none", config=EvalConfig()
    )
    write_eval_log(EvalLog(eval=spec, status="success", samples=[sample]), out)


if __name__ == "__main__":
    write_log(sys.argv[1])
