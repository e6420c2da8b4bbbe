"""What only HBase's own client can do, through py4j: splits, moves, flushes, compactions."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

MASTER = "org.apache.hadoop.hbase.master.HMaster"
GATEWAY = "org.apache.hadoop.hbase.thrift2.ThriftServer"
ADMIN_SECONDS_MAX = 60
SPLIT_TRIES = 5
_callers: list[HBaseAdmin] = []
"""Those that have called a main method: their connections last as long as this process."""

logging.getLogger("py4j").setLevel(logging.CRITICAL)  # JVMs are killed: calls to them then fail


class HBaseAdmin:
    """HBase's client inside a JVM that listens for py4j."""

    def __init__(self, port: int, token: str) -> None:
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._admin: Any = None

    def run_main(self, name: str, *arguments: str) -> None:
        """Call the main method of a class. It does not return: it has a thread here and one there,
        which goes on when this process ends."""
        _callers.append(self)
        threading.Thread(target=self._call_main, args=(name, arguments), daemon=True).start()

    def _call_main(self, name: str, arguments: tuple[str, ...]) -> None:
        main: Any = self._gateway.jvm
        for part in name.split("."):
            main = getattr(main, part)
        array = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(arguments))
        for number, argument in enumerate(arguments):
            array[number] = argument
        with contextlib.suppress(Py4JError):  # the JVM was killed: that ends the call
            main.main(array)

    def flush(self, table: str) -> None:
        self._open_admin().flush(self._name(table))

    def compact_and_wait(self, table: str) -> None:
        """A major compaction of every file of the table, flushed first."""
        admin, name = self._open_admin(), self._name(table)
        admin.flush(name)
        for region in admin.getRegions(name):
            self._compact_region(admin, region)

    def _compact_region(self, admin: Any, region: Any) -> None:
        admin.majorCompactRegion(region.getRegionName())
        states = self._gateway.jvm.org.apache.hadoop.hbase.client.CompactionState
        wait = threading.Event()
        while True:
            wait.wait(0.05)
            state = admin.getCompactionStateForRegion(region.getRegionName())
            if state.equals(states.NONE):
                return

    def split_table(self, table: str, key: bytes) -> None:
        """Ask for the region with this key to be split there; it happens while it is used. A half
        of an earlier split that still reads its parent's files is compacted first."""
        for _ in range(SPLIT_TRIES - 1):
            try:
                self._open_admin().split(self._name(table), key)
            except Py4JJavaError as error:
                if "splittable" not in str(error.java_exception):
                    raise
                self.compact_and_wait(table)
            else:
                return
        self._open_admin().split(self._name(table), key)

    def move_regions(self, table: str) -> None:
        """Move every region of the table to a server that HBase chooses."""
        admin = self._open_admin()
        for region in admin.getRegions(self._name(table)):
            admin.move(region.getEncodedNameAsBytes())

    def count_live_servers(self) -> int:
        """Region servers that the master holds to be alive."""
        return len(self._open_admin().getClusterMetrics().getLiveServerMetrics())

    def _open_admin(self) -> Any:
        if self._admin is None:
            hbase = self._gateway.jvm.org.apache.hadoop.hbase
            settings = hbase.HBaseConfiguration.create()
            # Those of the gateways are for requests of clients: a move takes longer.
            for name in ("hbase.client.operation.timeout", "hbase.rpc.timeout"):
                settings.set(name, str(ADMIN_SECONDS_MAX * 1000))
            connection = hbase.client.ConnectionFactory.createConnection(settings)
            self._admin = connection.getAdmin()
        return self._admin

    def _name(self, table: str) -> Any:
        return self._gateway.jvm.org.apache.hadoop.hbase.TableName.valueOf(table)

    def halt(self) -> None:
        """End the JVM at once, as kill does, except that it writes its archive of classes."""
        with contextlib.suppress(Py4JError):  # it is gone before it can answer
            self._gateway.jvm.java.lang.Runtime.getRuntime().halt(0)

    def close(self) -> None:
        self._gateway.close()
