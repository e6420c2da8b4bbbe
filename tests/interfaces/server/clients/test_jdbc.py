"""The JDBC driver: a small Java program with parameters, batches, fetch sizes, metadata, COPY."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interfaces.server.clients.conftest import PASSWORD, USER, fetch_once, run_program

JAR = "postgresql-42.7.4.jar"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


@pytest.mark.skipif(
    not (shutil.which("javac") and shutil.which("mvn")), reason="a JDK or Maven is missing"
)
def test_a_program_of_java(port: int) -> None:
    fetch = ["mvn", "-B", "-q", COPY_GOAL, "-DoutputDirectory=."]
    fetch.append("-Dartifact=org.postgresql:postgresql:42.7.4")
    jar = fetch_once("jdbc", JAR, fetch) / JAR
    program = str(Path(__file__).with_name("Client.java"))
    url = f"jdbc:postgresql://127.0.0.1:{port}/shop"
    assert run_program(["java", "-cp", str(jar), program, url, USER, PASSWORD]) == ["done"]
