"""Real attacks from inside, in both sandboxes: network, secrets, other candidates, the host (S1, S2, S3, S9, S12)."""

import os
import socket
import threading

import pytest

from grading.grader.options import GradingOptions
from grading.grader.sandbox import Expect, Limits, Question
from grading.grader.sandbox.engine import Job
from tests.grading.grader.sandbox.asking import seen
from tests.grading.grader.sandbox.engines import IMAGE
from tests.grading.grader.sandbox.test_tree import CARRIED, READ_ALL, SECRET, Host

CANARY = "canary-b1946ac92492d234"

REACH = """
import socket, sys
tcp, udp, abstract = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def reach(what, family, kind, address, then=None):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(1)
            s.connect(address)
            if then: s.send(then); s.recv(100)
            print('REACHED', what, address)
    except (OSError, socket.timeout) as e: print('no', what, e)

for host in ('127.0.0.1', '0.0.0.0', *sys.argv[4:]):
    reach('tcp', socket.AF_INET, socket.SOCK_STREAM, (host, tcp))
    reach('udp', socket.AF_INET, socket.SOCK_DGRAM, (host, udp), b'hello')
    reach('dns', socket.AF_INET, socket.SOCK_DGRAM, (host, 53), b'\\0' * 12)
reach('tcp6', socket.AF_INET6, socket.SOCK_STREAM, ('::1', tcp))
reach('abstract', socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + abstract)
reach('docker', socket.AF_UNIX, socket.SOCK_STREAM, '/var/run/docker.sock')
reach('metadata', socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80))
try: print('REACHED', 'name', socket.gethostbyname('localhost.localdomain.example'))
except OSError as e: print('no', e)
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); print('REACHED raw')
except OSError as e: print('no raw', e)
for line in open('/proc/net/dev').read().splitlines()[2:]:
    name = line.split(':')[0].strip()
    if name not in ('lo', 'tunl0', 'sit0', 'ip6tnl0', 'gre0', 'gretap0', 'erspan0', 'ip_vti0', 'ip6_vti0', 'ip6gre0'):
        print('REACHED interface', name)
print('all tried')
"""


class Listening:
    """Services of this machine: TCP on IPv4 and IPv6, UDP that answers, an abstract socket."""

    def __enter__(self):
        self.abstract = f"gagar-{os.getpid()}"
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind("\0" + self.abstract)
        self.unix.listen()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.got: list[bytes] = []
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()
        self.sockets = [self.tcp, self.unix]
        if socket.has_dualstack_ipv6():
            self.sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        for each in self.sockets:
            each.setblocking(False)
        return self

    def _answer(self):
        while True:
            data, who = self.udp.recvfrom(100)
            if data == b"stop":
                return
            self.got.append(data)
            self.udp.sendto(data, who)

    def connections(self) -> int:
        count = 0
        for each in self.sockets:
            try:
                each.accept()[0].close()
                count += 1
            except BlockingIOError:
                continue
        return count

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
            ours.sendto(b"stop", self.udp.getsockname())
        self.thread.join(5)
        for each in (*self.sockets, self.udp):
            each.close()


def test_no_network_is_reached(box):
    with Listening() as here:
        # the probe itself works: outside of a sandbox everything here answers
        socket.create_connection(("127.0.0.1", here.port)).close()
        assert here.connections() == 1
        words = (str(here.port), str(here.udp.getsockname()[1]), here.abstract)
        ran = box.ask(argv=("python3", "-c", REACH, *words), expect=Expect(contains="all tried"))
        assert here.connections() == 0 and here.got == []
    assert ran.outcome == "passed", ran.output
    assert b"REACHED" not in ran.output, ran.output


LOOK = """
import os, stat
wanted = ''.join(('canary', '-b1946', 'ac92492', 'd234')).encode()
looked = 0
def look(path):
    global looked
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            data = os.read(fd, 1 << 20); os.close(fd)
            looked += 1
            if wanted in data: print('FOUND in', path)
    except OSError: pass
if wanted in repr(os.environ).encode(): print('FOUND in the environment')
for folder, folders, files in os.walk('/proc'):
    folders[:] = [f for f in folders if f not in ('task', 'net', 'map_files', 'sys', 'bus', 'irq', 'fs', 'tty')]
    for name in files:
        if name in ('environ', 'cmdline', 'mounts', 'mountinfo', 'maps', 'comm', 'cgroup'):
            look(os.path.join(folder, name))
    for name in os.listdir(folder) if folder.endswith('/fd') else ():
        look(os.path.join(folder, name))
for top in ('/check', '/tmp', '/etc', '/root', '/home', '/run', '/var', '/mnt', '/srv', '/opt', '/dev/shm'):
    for folder, _, files in os.walk(top):
        for name in files: look(os.path.join(folder, name))
print('looked at', looked > 8)
"""


def test_a_secret_of_the_worker_is_never_found(box, monkeypatch, tmp_path):
    monkeypatch.setenv("GAGAR_GRADER_KEY", CANARY)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for place in ("home/.netrc", "home/token", "token"):
        (tmp_path / place).write_text(f"password {CANARY}")
    with open("/dev/shm/gagar-canary", "w") as file, open(tmp_path / "token") as still_open:
        os.set_inheritable(still_open.fileno(), True)
        file.write(CANARY)
        file.flush()
        (box.tree / ".git").mkdir()
        (box.tree / ".git/config").write_text(f"[remote]\nurl = https://user:{CANARY}@host/x")
        ran = box.python(LOOK, expect=Expect(contains="looked at True"))
        os.unlink(file.name)
    assert ran.outcome == "passed", ran.output
    assert b"FOUND" not in ran.output, ran.output


CLIMB = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, done):
    print('DID' if done else 'no', what)
status = open('/proc/self/status').read()
tried('capabilities', any(int(l.split()[1], 16) for l in status.splitlines() if l.startswith('Cap')))
tried('new privileges', 'NoNewPrivs:\\t1' not in status)
tried('root', os.getuid() == 0 or os.geteuid() == 0)
tried('setuid', not libc.setuid(0))
tried('user namespace', not libc.unshare(0x10000000))
tried('network namespace', not libc.unshare(0x40000000))
tried('mount', not libc.mount(b'none', b'/tmp', b'tmpfs', 0, b''))
tried('chroot', not libc.chroot(b'/check'))
for path in ('/usr/bin/x', '/etc/x', '/bin/x', '/x', '/dev/x', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger',
             '/sys/fs/cgroup/x', '/dev/vda', '/dev/mem', '/dev/kmsg'):
    try: open(path, 'w').close(); tried('write ' + path, True)
    except OSError: pass
try: os.mknod('/check/tmp/disk', 0o60666, os.makedev(254, 0)); tried('make a device', True)
except OSError: pass
tried('other processes', len([p for p in os.listdir('/proc') if p.isdigit()]) > 6)
print('all tried')
"""


def test_nothing_of_the_machine_can_be_changed_or_climbed(box):
    ran = box.python(CLIMB, expect=Expect(contains="all tried"))
    assert ran.outcome == "passed", ran.output
    assert b"DID" not in ran.output, ran.output


LITTER = """
import os, socket
os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe'); open('app.py', 'w').write('changed')
socket.socket(socket.AF_UNIX).bind('socket')
open('setuid', 'w').close(); os.chmod('setuid', 0o6777); os.link('app.py', 'second')
os.rename('data', 'moved')
try: os.chown('.', 0, 0)
except OSError: pass
print('littered', open('app.py').read())
"""


def test_what_a_candidate_writes_is_seen_by_no_other_run_and_never_by_the_host(box):
    box.write(app="original = 1", data__x="x = 1")
    before = seen(box.tree)
    for _ in range(2):  # the second finds the tree as the first did
        ran = box.python(LITTER, expect=Expect(contains="littered changed"))
        assert ran.outcome == "passed", ran.output
        assert seen(box.tree) == before
    ran = box.ask(
        argv=("sh", "-c", "cat app.py; ls /check /check/tmp /tmp /dev/shm"), expect=Expect(contains="original")
    )
    assert ran.outcome == "passed" and b"littered" not in ran.output


def test_all_links_at_once_lead_nowhere(box, tmp_path):
    host = Host(tmp_path)
    for number, plant in enumerate(CARRIED.values()):
        (box.tree / str(number)).mkdir()
        plant(box.tree / str(number), host)
    ran = box.python(READ_ALL, expect=Expect(contains="all read"))
    assert ran.outcome == "passed", ran.output
    assert SECRET not in ran.output and host.secret.read_bytes() == SECRET


@pytest.mark.alone
def test_no_setting_of_a_run_and_nothing_in_an_image_turns_the_network_on(engine, docker_box):
    from grading.grader.sandbox.containers import client, container

    assert not [name for name in GradingOptions.__dataclass_fields__ if "net" in name or "config" in name]
    assert not [name for name in Question.__dataclass_fields__ if "net" in name]
    api = client().api
    made = container(api, IMAGE, "x", Job(None, ["0"], Limits(), False), volumes={"/data": {}})
    assert (made["host_config"]["NetworkMode"], made["network_disabled"]) == ("none", True)
    assert made["host_config"].get("Binds") is None and made["host_config"].get("Mounts") is None
    assert not made["host_config"].get("Privileged") and made["host_config"]["CapDrop"] == ["ALL"]
    # an image of its own with everything an image can say
    said = ["USER root", "EXPOSE 80", "VOLUME /data", "ENV http_proxy=http://127.0.0.1:1", 'ENTRYPOINT ["/evil"]']
    base = api.create_container(IMAGE, ["true"], network_disabled=True)
    api.commit(base, repository="gagar-tests", tag="evil", changes="\n".join(said))
    api.remove_container(base)
    docker_box.sandbox = type(docker_box.sandbox)(type(docker_box.sandbox.engine)(client(), "gagar-tests:evil"))
    docker_box.sandbox.image = "gagar-tests:evil"
    code = "import os; print(os.getuid(), sorted(os.listdir('/sys/class/net')), os.statvfs('/data').f_blocks > 1 << 20)"
    ran = docker_box.python(code, expect=Expect(contains="65534 ['lo"))
    assert ran.outcome == "passed" and b"True" not in ran.output, ran.output
    assert api.volumes()["Volumes"] in (None, [])
