import type { Command } from "commander";
import { refuseReader } from "../../core/store/activity/reader-login.ts";
import { migrate } from "../../core/store/migrate.ts";
import { inSession, type Session } from "../../terminal/session.ts";

export const examples = [
  ["migrate", "after a release is installed, before its workers start"],
  ["migrate --json", "the same for a script, which reads what was applied"],
] as const;

export function define(command: Command): void {
  command.action(inSession(run));
}

async function run(session: Session): Promise<undefined> {
  const store = await session.storeToMigrate();
  await refuseReader(store.db);
  const result = await migrate(store);
  session.output.data(result, ({ applied, newer }) => {
    if (newer.length > 0)
      return `Schema and views belong to a newer release (${newer.join(", ")}) and were not changed.`;
    return applied.length === 0
      ? "Schema and views are up to date."
      : `Applied ${applied.join(", ")}. Views are up to date.`;
  });
  if (result.missingRoles.length === 0) return;
  session.output.note(
    `This role may not create roles. A superuser must run the lines below. Then migrate again.\n  ${result.missingRoles.join("\n  ")}`,
  );
}
