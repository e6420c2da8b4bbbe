"""HBase in one JVM: ZooKeeper, master, region server and Thrift2 gateway, for tests and demos.

The JVM's main program is py4j's; through it the two mains of HBase are called, so that no Java of
our own is needed. Its port takes no command without a token, which only this user can read.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from belvedere.errors import Unavailable
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import parse_url
from tools.hbase import processes
from tools.hbase.admin import GATEWAY, MASTER, HBaseAdmin
from tools.hbase.artifacts import provide_jars
from tools.hbase.class_archive import choose_scratch, keep_archive, locate_archive
from tools.hbase.settings import JAVA_FLAGS, java_command, site_settings, write_site

HEAP_MB = 768
START_SECONDS_MAX = 120
RECORD_SECONDS_MAX = 60
STATE = "state.json"
PROBE = "belvedere_probe"
"""A namespace that is made and removed to see whether HBase is ready."""


@dataclass(frozen=True, slots=True)
class SingleHBase:
    """A running HBase. `home` holds everything it writes."""

    home: str
    pid: int
    gateway_port: int
    admin_port: int
    admin_token: str
    recording: str = ""
    """Where it writes its classes for later starts as it ends by itself; empty: it does not."""

    @property
    def url(self) -> str:
        return f"hbase://127.0.0.1:{self.gateway_port}"

    def open_admin(self) -> HBaseAdmin:
        return HBaseAdmin(self.admin_port, self.admin_token)

    def stop(self) -> None:
        """Kill it and remove its data; the log stays."""
        if self.recording and processes.is_running(self.pid):
            self.open_admin().halt()
            if processes.has_ended(self.pid, RECORD_SECONDS_MAX):
                keep_archive(Path(self.recording))
        processes.kill_process(self.pid)
        for part in ("data", "zookeeper", "tmp", "conf", STATE):
            path = Path(self.home) / part
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def start_single(home: Path, *, detached: bool, record: bool = False) -> SingleHBase:
    """Start HBase on empty data, and return when it answers. `record`: the first that is stopped
    leaves an archive of its classes to those after it."""
    jars = provide_jars()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = site_settings(home, processes.choose_free_port())
    settings |= {
        # It is one process: its parts need not find out when another of them is dead, and by
        # default end themselves when the machine has given them no processor for 10 seconds.
        "zookeeper.session.timeout.localHBaseCluster": "120000",
        "hbase.zookeeper.property.tickTime": "6000",  # sessions may last 20 ticks
        "hbase.cluster.distributed": "false",
        "hbase.localcluster.assign.random.ports": "true",
        "hbase.master.wait.on.regionservers.maxtostart": "1",
    }
    write_site(home / "conf", settings)
    log, output = home / "hbase.log", home / "hbase.out"
    scratch = choose_scratch(locate_archive(jars, JAVA_FLAGS)) if record else None
    main = ("py4j.GatewayServer", "--enable-auth", "0")
    command = java_command(HEAP_MB, jars, home / "conf", *main, recording=scratch)
    process = processes.start_process(command, log, output, detached=detached)
    try:
        processes.wait_until(
            lambda: len(read_lines(output)) >= 2, [process], log, START_SECONDS_MAX
        )
        port, token = read_lines(output)[:2]
        output.unlink()
        running = SingleHBase(
            str(home),
            process.pid,
            processes.choose_free_port(),
            int(port),
            token,
            str(scratch or ""),
        )
        admin = running.open_admin()
        admin.run_main(MASTER, "start")
        admin.run_main(GATEWAY, "start", "-p", str(running.gateway_port), "--bind", "127.0.0.1")
        processes.wait_until(lambda: answers(running.url), [process], log, START_SECONDS_MAX)
    except BaseException:
        processes.kill_process(process.pid)
        process.wait()
        raise
    return running


def read_lines(path: Path) -> list[str]:
    """The complete lines of a file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def answers(gateways: str) -> bool:
    """Whether HBase answers, and takes changes of tables. An open port is not enough, nor is an
    answer to a question: the master may not be ready."""
    exchange = Exchange(parse_url(f"{gateways}/{PROBE}?timeout_ms=2000"))
    wanted = load_types().TNamespaceDescriptor(name=PROBE)
    try:
        if PROBE not in exchange.perform_call(GatewayCall("listNamespaces", {}, list)):
            exchange.perform_call(GatewayCall("createNamespace", {"namespaceDesc": wanted}, bool))
        exchange.perform_call(GatewayCall("deleteNamespace", {"name": PROBE}, bool))
        return True
    except Unavailable:
        return False
    finally:
        exchange.close()


def save_state(running: SingleHBase) -> None:
    path = Path(running.home) / STATE
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(running)))


def load_state(home: Path) -> SingleHBase | None:
    """The HBase that was started in this directory, if it still runs."""
    try:
        found = SingleHBase(**json.loads((home / STATE).read_text()))
    except FileNotFoundError:
        return None
    return found if processes.is_running(found.pid) else None
