"""What the commands share: exit codes, the group that shows errors, the JSON option."""

from typing import Any

import click

from dpaudit.errors import DPAuditError
from dpaudit.printable import printable

__all__ = ["INPUT_ERROR", "INTERRUPTED", "REFUTED", "Group", "json_option"]

REFUTED = 1
INPUT_ERROR = 2
INTERRUPTED = 130
"""After Ctrl-C, as shells have it: 128 + SIGINT."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output."
)


class Group(click.Group):
    """Shows every intended error as one sentence, with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DPAuditError as error:
            click.echo(f"dpaudit: {printable(error)}", err=True)
            ctx.exit(INPUT_ERROR)
        except KeyboardInterrupt:  # click's own exit code, 1, would mean: refuted
            click.echo("dpaudit: stopped at once", err=True)
            ctx.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from dpaudit.validation import check_name

            check_name("command", args[0], self.list_commands(ctx))
            raise
