import { Command } from "commander";
import { addBackfillCommands } from "./backfill-commands.ts";
import { addCloseCommand } from "./close-command.ts";
import { addDbtCommand } from "./dbt-command.ts";
import { addDemoCommand } from "./demo-command.ts";
import { addDoctorCommand } from "./doctor-command.ts";
import { describeError, exitCodeOf } from "./exit.ts";
import { addExportCommand } from "./export-command.ts";
import { addLoadCommands } from "./load-commands.ts";
import { addLookCommands } from "./look-commands.ts";
import { addMigrateCommand } from "./migrate-command.ts";
import { addPlatformCommands } from "./platform-commands.ts";
import { addPricesCommands } from "./prices-commands.ts";
import { addProbeCommand } from "./probe-command.ts";
import { addPruneCommand } from "./prune-command.ts";
import { addReconcileCommand } from "./reconcile-command.ts";
import { addServeCommand } from "./serve-command.ts";
import { addStandinCommand } from "./standin-command.ts";
import { addTotalsCommand } from "./totals-command.ts";

/** Reads the command line, does what it says and sets the exit code. */
export async function main(): Promise<void> {
  const program = new Command("usage-etl")
    .description(
      "Billable usage of an agent platform, in Postgres, proved against the platform's own export.",
    )
    .option("--json", "data as JSON on stdout")
    .exitOverride()
    .showHelpAfterError("(see --help)");

  addDemoCommand(program);
  addStandinCommand(program);
  addMigrateCommand(program);
  addLoadCommands(program);
  addBackfillCommands(program);
  addReconcileCommand(program);
  addTotalsCommand(program);
  addCloseCommand(program);
  addLookCommands(program);
  addDoctorCommand(program);
  addServeCommand(program);
  addExportCommand(program);
  addDbtCommand(program);
  addPricesCommands(program);
  addPruneCommand(program);
  addProbeCommand(program);
  addPlatformCommands(program);
  for (const command of allUnder(program)) {
    command.option("--json", "data as JSON on stdout");
  }
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    // Commander has said its own errors already.
    if (!(error instanceof Error && error.name === "CommanderError"))
      process.stderr.write(`${describeError(error)}\n`);
  }
}

function allUnder(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allUnder(one)]);
}
