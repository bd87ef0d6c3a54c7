"""The command line: ``dpaudit COMMAND``; related commands share a module.

Exit codes, of which none has another meaning (`dpaudit.cli.exits`):

- 0: not refuted (`verify`: not confirmed). Other commands: done.
- 1: refuted (`verify`: confirmed). `bench-audit`: a target that must be met is not.
- 2: the usage, the input or the code under audit is at fault, or the machine: a file
  cannot be written, standard output is closed or full, a worker is lost.
- 3: dpaudit is at fault.
- 130: Ctrl-C. An audit says what it has shown so far.

What is audited runs in the same process, unless ``--workers`` asks for others, and can
end it with any code: `os._exit` cannot be held up. Of a worker it is seen.

Everything heavy is imported inside the commands, so that ``dpaudit --help`` is quick.
"""

import click

from dpaudit import __version__
from dpaudit.cli.audit import audit_command
from dpaudit.cli.bound import bound_command, canaries_command, plan_command
from dpaudit.cli.compare import compare_command, recommend_command
from dpaudit.cli.exits import Group
from dpaudit.cli.list import list_command, schema_command
from dpaudit.cli.report import bench_audit_command, report_command
from dpaudit.cli.verify import export_command, init_command, verify_command

__all__ = ["main"]


@click.group(
    cls=Group,
    commands=[
        list_command,
        audit_command,
        verify_command,
        plan_command,
        init_command,
        export_command,
        bound_command,
        canaries_command,
        compare_command,
        recommend_command,
        report_command,
        bench_audit_command,
        schema_command,
    ],
    examples=(
        "dpaudit list",
        "dpaudit audit symmetric-noise",
        "dpaudit plan --epsilon 1 --true 2",
    ),
)
@click.version_option(__version__)
@click.option(
    "--debug", is_flag=True, envvar="DPAUDIT_DEBUG", help="Show tracebacks of errors."
)
def main(debug: bool) -> None:
    """Audit differentially private mechanisms: try to refute what they claim."""
