#!/usr/bin/env node
import { Command } from "commander";
import { addBackfillCommands } from "./cli/backfill-commands.ts";
import { addDemoCommand } from "./cli/demo-command.ts";
import { addDoctorCommand } from "./cli/doctor-command.ts";
import { describeError, exitCodeOf } from "./cli/exit.ts";
import { addLoadCommands } from "./cli/load-commands.ts";
import { addLookCommands } from "./cli/look-commands.ts";
import { addMigrateCommand } from "./cli/migrate-command.ts";
import { addPruneCommand } from "./cli/prune-command.ts";
import { addReconcileCommand } from "./cli/reconcile-command.ts";
import { addServeCommand } from "./cli/serve-command.ts";
import { addStandinCommand } from "./cli/standin-command.ts";

const program = new Command("usage-etl")
  .description("Billable usage of an agent platform, in Postgres, proved against the platform's own export.")
  .option("--json", "data as JSON on stdout")
  .exitOverride()
  .showHelpAfterError("(see --help)");

addDemoCommand(program);
addStandinCommand(program);
addMigrateCommand(program);
addLoadCommands(program);
addBackfillCommands(program);
addReconcileCommand(program);
addLookCommands(program);
addDoctorCommand(program);
addServeCommand(program);
addPruneCommand(program);
for (const command of program.commands.flatMap((one) => [one, ...one.commands])) {
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
