import { Command } from "commander";
import { printable } from "../printable.ts";
import { addBackfillCommands } from "./commands/backfill.ts";
import { addCloseCommand } from "./commands/close.ts";
import { addConfigCommand } from "./commands/config.ts";
import { addCoverageCommand } from "./commands/coverage.ts";
import { addDataStartCommand } from "./commands/data-start.ts";
import { addDbtCommand } from "./commands/dbt.ts";
import { addDemoCommand } from "./commands/demo.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addExportCommand } from "./commands/export.ts";
import { addMigrateCommand } from "./commands/migrate.ts";
import { addPlanCommand } from "./commands/plan.ts";
import { addPlatformCommands } from "./commands/platform/platform.ts";
import { addPricesCommands } from "./commands/prices.ts";
import { addProbeCommand } from "./commands/probe.ts";
import { addPruneCommand } from "./commands/prune.ts";
import { addReconcileCommand } from "./commands/reconcile.ts";
import { addServeCommand } from "./commands/serve.ts";
import { addStandinCommand } from "./commands/standin.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addSyncCommand } from "./commands/sync.ts";
import { addTotalsCommand } from "./commands/totals.ts";
import { describeError, exitCodeOf } from "./session/exit.ts";

/** Runs the command line and sets the exit code. */
export async function main(): Promise<void> {
  const program = new Command("usage-etl")
    .description(
      "Load billable trace counts of an agent platform into Postgres and reconcile them with its CSV export.",
    )
    .option("--json", "print data as JSON on stdout")
    .exitOverride()
    .showHelpAfterError("(see --help)");

  addDemoCommand(program);
  addStandinCommand(program);
  addMigrateCommand(program);
  addPlanCommand(program);
  addSyncCommand(program);
  addBackfillCommands(program);
  addReconcileCommand(program);
  addTotalsCommand(program);
  addCloseCommand(program);
  addCoverageCommand(program);
  addStatusCommand(program);
  addConfigCommand(program);
  addDoctorCommand(program);
  addDataStartCommand(program);
  addServeCommand(program);
  addExportCommand(program);
  addDbtCommand(program);
  addPricesCommands(program);
  addPruneCommand(program);
  addProbeCommand(program);
  addPlatformCommands(program);
  for (const command of allUnder(program)) {
    command.option("--json", "print data as JSON on stdout");
  }
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    // Commander has printed its own errors already.
    if (!(error instanceof Error && error.name === "CommanderError"))
      process.stderr.write(`${printable(describeError(error))}\n`);
  }
}

function allUnder(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allUnder(one)]);
}
