# SPDX-License-Identifier: Apache-2.0
"""Every code block of README.md, CONTRIBUTING.md and docs/ is run, or is the text of a file that the build compiles.

The words after the three backticks say which:

  bash            run from the repository's root, with the command treadle in the path
  python          run by the Python of the tests
  cpp FILE, ...   (any language) the block must stand in FILE line for line, indentation aside; the build or the tests run FILE
  text, relay     is shown, not run; text must not hold commands
  bash norun      installs or tests the whole, so it is not run from here: allowed for the two commands of NORUN only
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w[^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
NORUN = {"./tools/quickstart", "./tools/test"}
SHOWN = {"text", "relay"}


def blocks():
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            words = (found[1] or "").split()
            if words and words[0] in SHOWN:
                continue
            yield pytest.param(words, found[2], id=f"{page.relative_to(ROOT)}:{line}")


def test_commands_are_not_shown_as_text():
    command = re.compile(r"^\s*(\$ )?(treadle |(\S*/)?python)", re.MULTILINE)
    found = [f"{page.relative_to(ROOT)}: {line}" for page in PAGES for words, code in BLOCK.findall(page.read_text()) if words.split()[:1] == ["text"]
             for line in code.splitlines() if command.match(line)]
    assert not found, "blocks of commands are marked bash, so that they are run:\n" + "\n".join(found)


def run(command):
    environment = {**os.environ, "PATH": f"{ROOT / 'build' / 'release' / 'bin'}:{os.environ['PATH']}"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("words, code", list(blocks()))
def test_block(words, code):
    if words == ["bash", "norun"]:
        assert code.strip() in NORUN
    elif words == ["bash"]:
        run(["bash", "-euo", "pipefail", "-c", code])
    elif words == ["python"]:
        run([sys.executable, "-c", code])
    elif len(words) == 2:
        lines = [line.strip() for line in (ROOT / words[1]).read_text().splitlines()]
        wanted = [line.strip() for line in textwrap.dedent(code).splitlines()]
        starts = range(len(lines) - len(wanted) + 1)
        assert any(lines[i : i + len(wanted)] == wanted for i in starts), f"not in {words[1]}"
    else:
        pytest.fail(f"a block says how it is tested: {words or 'no language'}")
