"""Runs code along with modules named on the command line: imported once, it forks for each request.

It runs on Kartothek's Python 3.8 and on plateau's. A request is a line of JSON on standard input,
`[code, arguments]`; its answer is one on standard output, `[exit status, standard output, standard
error]`. Each code finds a process as fresh as `python -c` would give it, but for modules that are
loaded. Ends with its input.
"""

import json
import os
import sys
import tempfile
import traceback
from importlib import import_module

for name in sys.argv[1:]:
    import_module(name)


def run(code, arguments, output, errors):
    """Run code in the child, and end it."""
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else bool(error.code)
    except BaseException:  # noqa: BLE001 - as Python itself prints it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def answer(code, arguments):
    """Let a child run code; gives its exit status and what it printed."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            run(code, arguments, output, errors)
        status = os.waitpid(child, 0)[1]
        printed = []
        for file in (output, errors):
            file.seek(0)
            printed.append(file.read().decode("utf-8"))
    return [os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status), *printed]


for line in sys.stdin:
    print(json.dumps(answer(*json.loads(line))), flush=True)
