#!/usr/bin/env bash
# Builds .venv from requirements.lock, with every extra and this package in editable form.
#
# Needs Python >= 3.11 and nothing else. The stamp .venv/.complete holds a hash of everything the
# environment is made from, so a second run only compares it. The mark .venv/.installing stays
# behind when a run is cut short; the next run then starts from an empty environment, because pip
# takes a half-copied package for a whole one.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }

wanted() { cat requirements.lock pyproject.toml tools/setup.sh | sha256sum | cut -d' ' -f1; }

is_complete() {
    [ -x .venv/bin/python ] && [ ! -e .venv/.installing ] &&
        [ "$(cat .venv/.complete 2>/dev/null)" = "$(wanted)" ]
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed; set PYTHON to one if it is not on the PATH"
}

apt_install() {
    is_root && command -v apt-get >/dev/null || return 1
    say "installing $* with apt"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@"; } >&2
}

java_is_there() { command -v java >/dev/null; }

note_java() {
    java_is_there || say "Java 17 is missing: the Spark and HBase tests need it, nothing else" \
        "does; install openjdk-17-jre-headless"
}

provide_java() {
    # Debian 13 has no package for 17 itself; its default is newer and serves as well.
    java_is_there || apt_install openjdk-17-jre-headless ||
        { is_root && apt_install default-jre-headless; } || true
    note_java
    # HBase, for tests and demos, is put together by Maven.
    command -v mvn >/dev/null || apt_install maven ||
        say "Maven is missing: the HBase tests need it, nothing else does; install maven"
}

make_venv() {
    local python version
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" || apt_install python3-venv ||
            fail "the venv module of $python is missing; install python$version-venv"
    fi
    say "creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

packages_touched() { stat -c %y .venv/lib*/python*/site-packages 2>/dev/null || true; }

install_packages() {
    local before
    rm -f .venv/.complete
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    before=$(packages_touched)
    touch .venv/.installing
    say "installing the packages of requirements.lock"
    if ! .venv/bin/python -m pip install -q --disable-pip-version-check --use-pep517 \
        --require-hashes -r requirements.lock; then
        # Most failures, such as a lost network, come before anything is copied.
        [ "$(packages_touched)" != "$before" ] || rm .venv/.installing
        fail "pip failed; see above"
    fi
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps \
        --no-build-isolation --editable .
    .venv/bin/python -m pip check >/dev/null ||
        fail "the installed packages do not fit together: see .venv/bin/python -m pip check"
    wanted >.venv/.complete
    rm -f .venv/.installing
}

if is_complete; then
    note_java
    exit 0
fi
if command -v flock >/dev/null; then
    exec 9>.setup.lock
    flock 9
    is_complete && exit 0
fi
[ ! -e .venv/.installing ] || say "the last run was cut short: starting from an empty .venv"
usable='import sys; sys.exit(sys.version_info < (3, 11))'
if [ -e .venv/.installing ] || ! .venv/bin/python -c "$usable" 2>/dev/null; then
    make_venv
fi
provide_java
install_packages
say "done"
