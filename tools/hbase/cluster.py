"""A small HBase cluster on one machine, for tests of faults: ZooKeeper, a master, region servers
and Thrift2 gateways, each a JVM of its own, over files.

Any of them can be killed, paused and started again, and regions split and moved, while clients go
on. ZooKeeper notices a dead region server after 3 seconds.
"""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from tools.hbase import processes
from tools.hbase.admin import GATEWAY, MASTER, HBaseAdmin
from tools.hbase.artifacts import provide_jars
from tools.hbase.settings import java_command, site_settings, write_site
from tools.hbase.single import START_SECONDS_MAX, answers, read_lines

ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"
REGION_SERVER = "org.apache.hadoop.hbase.regionserver.HRegionServer"
HEAP_MB = 384
SESSION_MS = 3000
GATEWAY_RPC_MS = 1000
"""How long a gateway waits for a region server before it asks again: short, so that conditional
writes are sent twice, and answered False although the first was carried out."""


@dataclass(slots=True)
class HBaseCluster:
    """A running cluster. `home` holds everything it writes."""

    home: Path
    jars: Path
    gateway_ports: tuple[int, ...]
    running: dict[str, Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return "hbase://" + ",".join(f"127.0.0.1:{port}" for port in self.gateway_ports)

    def start_server(self, number: int) -> None:
        self._start(f"server{number}", REGION_SERVER, "start")

    def start_gateway(self, number: int) -> None:
        port = str(self.gateway_ports[number])
        hasty = f"-Dhbase.rpc.timeout={GATEWAY_RPC_MS}"
        self._start(f"gateway{number}", GATEWAY, hasty, "start", "-p", port, "--bind", "127.0.0.1")

    def restart_ended_servers(self) -> int:
        """Start every region server again that has ended by itself, as one does that was paused, or
        got no processor, for longer than its session; how many those were."""
        ended = [
            name
            for name, process in self.running.items()
            if name.startswith("server") and process.poll() is not None
        ]
        for name in ended:
            self.start_server(int(name.removeprefix("server")))
        return len(ended)

    def kill(self, name: str) -> None:
        """kill -9, and wait until the process is gone."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def pause(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGCONT)

    def open_admin(self) -> HBaseAdmin:
        """HBase's own client, in a JVM of its own that ends with the cluster."""
        output = self.home / "admin.out"
        self._start("admin", "py4j.GatewayServer", "--enable-auth", "0", output=output)
        log, process = self.home / "admin.log", self.running["admin"]
        processes.wait_until(
            lambda: len(read_lines(output)) >= 2, [process], log, START_SECONDS_MAX
        )
        port, token = read_lines(output)[:2]
        output.unlink()
        return HBaseAdmin(int(port), token)

    def stop(self) -> None:
        """Kill everything and remove its data; the logs stay."""
        for name in list(self.running):
            self.resume(name)
            self.kill(name)
        for part in ("data", "zookeeper", "tmp", "conf"):
            shutil.rmtree(self.home / part, ignore_errors=True)

    def _start(self, name: str, main: str, *arguments: str, output: Path | None = None) -> None:
        command = java_command(HEAP_MB, self.jars, self.home / "conf", main, *arguments)
        log = self.home / f"{name}.log"
        self.running[name] = processes.start_process(command, log, output, detached=False)


def start_cluster(home: Path, *, servers: int = 2, gateways: int = 2) -> HBaseCluster:
    """Start a cluster on empty data, and return when every gateway answers."""
    jars = provide_jars()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    port = processes.choose_free_port()
    _write_settings(home, port, servers)
    ports = tuple(processes.choose_free_port() for _ in range(gateways))
    cluster = HBaseCluster(home, jars, ports)
    try:
        cluster._start("zookeeper", ZOOKEEPER, str(home / "conf" / "zoo.cfg"))
        processes.wait_until(
            lambda: processes.accepts(port), list(cluster.running.values()), home, START_SECONDS_MAX
        )
        cluster._start("master", MASTER, "start")
        for number in range(servers):
            cluster.start_server(number)
        for number in range(gateways):
            cluster.start_gateway(number)
        wait_ready(cluster)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def wait_ready(cluster: HBaseCluster) -> None:
    """Wait until every gateway answers."""
    for port in cluster.gateway_ports:
        url = f"hbase://127.0.0.1:{port}"
        processes.wait_until(
            lambda url=url: answers(url),  # type: ignore[misc]
            list(cluster.running.values()),
            cluster.home,
            START_SECONDS_MAX,
        )


def _write_settings(home: Path, port: int, servers: int) -> None:
    settings = site_settings(home, port) | {
        "hbase.cluster.distributed": "true",
        "hbase.master.port": "0",
        "hbase.regionserver.port": "0",
        "hbase.master.wait.on.regionservers.maxtostart": str(servers),
        "zookeeper.session.timeout": str(SESSION_MS),
        "hbase.balancer.period": str(3600 * 1000),
    }
    write_site(home / "conf", settings)
    (home / "zookeeper").mkdir(exist_ok=True)
    (home / "conf" / "zoo.cfg").write_text(
        f"tickTime=500\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        f"dataDir={home}/zookeeper\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        f"maxSessionTimeout={2 * SESSION_MS}\n"
    )
