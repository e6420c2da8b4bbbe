#!/usr/bin/env bash
# Writes requirements.lock anew from pyproject.toml: every extra, every package with its hashes, for
# every Python from 3.11 on. Needs uv; `make setup` does not. The file names no index: which one
# packages come from is each machine's own pip configuration, and the hashes make it not matter.
set -euo pipefail
cd "$(dirname "$0")/.."
{
    echo "# Made by tools/lock.sh from pyproject.toml. Do not edit."
    uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
        --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links --quiet "$@"
} >requirements.lock.new
if grep -nE 'https?:|file:|--(extra-)?index-url|--find-links|^/| @ ' requirements.lock.new; then
    echo "lock: the lines above name an index or a local path; requirements.lock is unchanged" >&2
    exit 1
fi
mv requirements.lock.new requirements.lock
