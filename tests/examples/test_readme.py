"""What the README shows works as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.snippets import blocks, run_page

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = """
# Page

```python
a = 1
```

```console
$ no-such-command
```

```python
print(a + 1)
```

```sh
python -c 'print("from the environment")'
```
"""


def test_readme_snippets_run(tmp_path: Path) -> None:
    run_page((REPOSITORY / "README.md").read_text(), tmp_path)


def test_blocks_of_one_tag_form_one_program(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path) == {"python": "2\n", "sh": "from the environment\n"}


@pytest.mark.parametrize(
    "broken", ["```python\n1 / 0\n```\n", "```sh\nfalse\n```\n", "```python\nimport nothing_x\n```"]
)
def test_snippet_that_fails_is_noticed(broken: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_page(broken, tmp_path)


def test_page_without_code_runs_nothing(tmp_path: Path) -> None:
    assert blocks("text\n", "python") == []
    assert run_page("text\n", tmp_path) == {}
