"""The roles of compose.yaml as containers: its commands, environment, rights and mounts; only addresses differ."""

import secrets

from tests.conftest import wait_for
from tests.containers.written import filled, roles
from tests.real_processes import free_port

SECOND = 1_000_000_000
READY_S = 300  # on a busy machine; else seconds


class ContainerSite:
    def __init__(self, engine, image, services: dict[str, str]):
        self.engine, self.image = engine, image
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked = {"GAGAR_SECRET_KEY": secrets.token_hex(25), "POSTGRES_PASSWORD": "x", "RABBITMQ_PASSWORD": "x"}
        self.asked["WORKERS"] = "1"
        self.fixed = services | {"UVICORN_PORT": str(self.port)}
        self.bodies = engine.volumes.create("bodies")
        self.running: dict[str, object] = {}

    def run(self, name: str, command: list[str] | None = None):
        """A container of this role; a command replaces the one it has."""
        role = roles()[name]
        said = command or [filled(word, self.asked) for word in role.get("command", [])]
        environ = {key: filled(value, self.asked) for key, value in role["environment"].items()} | self.fixed
        health = (
            {} if role.get("healthcheck") else {"healthcheck": {"interval": SECOND, "start_period": READY_S * SECOND}}
        )
        return self.engine.containers.run(
            self.image.id,
            said or None,
            environment=environ,
            volumes=role["volumes"],
            read_only=role["read_only"],
            tmpfs=dict(mount.split(":") for mount in role["tmpfs"]),
            init=role["init"],
            cap_drop=role["cap_drop"],
            security_opt=role["security_opt"],
            network_mode="host",
            detach=True,
            **health,
        )

    def start(self) -> None:
        """As compose orders it: the tables first, then the others at once, until their health checks agree."""
        self.setup = self.run("setup")
        assert self.setup.wait(timeout=READY_S)["StatusCode"] == 0, self.setup.logs().decode()
        self.running = {name: self.run(name) for name in roles() if name != "setup"}
        for name in self.running:
            wait_for(lambda name=name: self.health(name) == "healthy", within_s=READY_S, every_s=0.3)

    def health(self, name: str) -> str:
        container = self.running[name]
        container.reload()
        assert container.status == "running", container.logs().decode()
        return container.attrs["State"]["Health"]["Status"]

    def inside(self, name: str, code: str) -> str:
        """What Python code prints in that container."""
        status, said = self.running[name].exec_run(["python", "-c", code])
        assert status == 0, said.decode()
        return said.decode().strip()

    def said(self) -> str:
        """The logs of all roles."""
        return "\n".join(f"{name}: {container.logs().decode()}" for name, container in self.running.items())

    def remove(self) -> None:
        for container in self.engine.containers.list(all=True):
            container.remove(force=True, v=True)
        self.bodies.remove()
