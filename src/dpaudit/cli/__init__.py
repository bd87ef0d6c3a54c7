"""The command line: ``dpaudit COMMAND``, one module for each command.

Exit codes: 0 not refuted (for `verify`: not confirmed), 1 refuted (for `verify`:
confirmed), 2 usage or input error; `bound` and `plan` report numbers, and end with 0.
An audit that Ctrl-C ended says what it has shown so far, and ends with 130.
Everything heavy is imported inside the commands, so that ``dpaudit --help`` is quick.
"""

import click

from dpaudit import __version__
from dpaudit.cli.audit import audit_command
from dpaudit.cli.bench_audit import bench_audit_command
from dpaudit.cli.bound import bound_command
from dpaudit.cli.export import export_command
from dpaudit.cli.init import init_command
from dpaudit.cli.list import list_command
from dpaudit.cli.options import Group
from dpaudit.cli.plan import plan_command
from dpaudit.cli.report import report_command
from dpaudit.cli.verify import verify_command

__all__ = ["main"]


@click.group(cls=Group)
@click.version_option(__version__)
def main() -> None:
    """Audit differentially private mechanisms: refuted, or not refuted, with proof."""


for _command in (
    list_command,
    audit_command,
    verify_command,
    plan_command,
    init_command,
    export_command,
    bound_command,
    report_command,
    bench_audit_command,
):
    main.add_command(_command)
