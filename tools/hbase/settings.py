"""Configuration files and JVM flags of HBase processes, made for quick starts on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tools.hbase.class_archive import build_classpath, locate_archive

OPENED = (
    "java.io java.nio sun.nio.ch java.lang jdk.internal.ref java.lang.reflect java.util"
    " java.util.concurrent"
).split()
EXPORTED = (
    "java.base/jdk.internal.misc java.base/sun.net.dns java.base/sun.net.util"
    " java.security.jgss/sun.security.krb5"
).split()

JAVA_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
    *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTED),
)

GATEWAY_SECONDS_MAX = 2
"""How long a gateway tries to do what it was asked. Together with the time in which a process acts
on what it read this stays below the grace of the commit protocol."""


def site_settings(home: Path, zookeeper_port: int) -> dict[str, str]:
    """What every form shares."""
    milliseconds = str(GATEWAY_SECONDS_MAX * 1000)
    return {
        "hbase.rootdir": f"file://{home}/data",
        "hbase.tmp.dir": f"{home}/tmp",
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.zookeeper.quorum": "localhost",
        "hbase.zookeeper.property.clientPort": str(zookeeper_port),
        "hbase.zookeeper.property.dataDir": f"{home}/zookeeper",
        "hbase.master.hostname": "localhost",
        "hbase.regionserver.hostname": "localhost",
        "hbase.master.ipc.address": "127.0.0.1",
        "hbase.regionserver.ipc.address": "127.0.0.1",
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.thrift.info.port": "-1",
        # Quicker starts and DDL: by default servers report and procedures run seconds apart.
        "hbase.regionserver.msginterval": "250",
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.interval": "100",
        "hbase.procedure.remote.dispatcher.delay.msec": "10",
        "hbase.assignment.dispatch.wait.msec": "10",
        "hbase.regionserver.handler.count": "30",
        "hbase.client.pause": "20",
        "hbase.client.retries.number": "50",
        # A connection holds a thread of its gateway, and the 17th would wait in silence.
        "hbase.thrift.minWorkerThreads": "200",
        "hbase.client.operation.timeout": milliseconds,
        "hbase.rpc.timeout": milliseconds,
        # Tests make many small tables: no 2 MB block for each of their regions.
        "hbase.hregion.memstore.mslab.enabled": "false",
    }


def write_site(directory: Path, settings: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    lines = ["<configuration>"]
    for name, value in settings.items():
        lines.append(f"<property><name>{name}</name><value>{escape(value)}</value></property>")
    (directory / "hbase-site.xml").write_text("\n".join([*lines, "</configuration>\n"]))
    (directory / "log4j2.properties").write_text(
        "rootLogger.level = warn\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
        "appender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %d{ISO8601} %p [%t] %c{2}: %m%n\n"
    )


def java_command(
    heap_mb: int,
    jars: Path,
    conf: Path,
    main: str,
    *arguments: str,
    recording: Path | None = None,
) -> list[str]:
    """The command of a JVM. `recording`: where it writes the classes it has loaded as it ends."""
    archive = locate_archive(jars, JAVA_FLAGS)
    classes = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    if recording is not None:
        classes = [f"-XX:ArchiveClassesAtExit={recording}"]
    classpath = build_classpath(jars, conf)
    return ["java", f"-Xmx{heap_mb}m", *JAVA_FLAGS, *classes, "-cp", classpath, main, *arguments]
