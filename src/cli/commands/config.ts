import type { Command } from "commander";
import { describeSettings } from "../../config/settings.ts";
import { table } from "../report/output.ts";
import { inSession, type Session } from "../session/session.ts";

export function define(command: Command): void {
  command.action(inSession(run));
}

async function run({ config, output }: Session): Promise<undefined> {
  const settings = describeSettings().map(({ name, about }) => [name, about]);
  output.data(
    config,
    () => `${table(["setting", "meaning"], settings)}\n\n${JSON.stringify(config, null, 2)}`,
  );
}
