import type { Command } from "commander";
import { describeSettings } from "../../config/settings.ts";
import { table } from "../report/output.ts";
import { inSession, type Session } from "../session/session.ts";

export function addConfigCommand(program: Command): void {
  program
    .command("config")
    .description("the configuration that is read, secrets hidden")
    .action(inSession(run));
}

async function run({ config, output }: Session): Promise<undefined> {
  output.data(config, () =>
    [
      table(
        ["setting", "meaning"],
        describeSettings().map(({ name, about }) => [name, about]),
      ),
      "",
      JSON.stringify(config, null, 2),
    ].join("\n"),
  );
}
