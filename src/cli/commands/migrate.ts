import type { Command } from "commander";
import { migrate } from "../../store/db/migrate.ts";
import { inSession, type Session } from "../session/session.ts";

export function addMigrateCommand(program: Command): void {
  program
    .command("migrate")
    .description("bring schema and views up to date; safe when started several times at once")
    .action(inSession(run));
}

async function run(session: Session): Promise<undefined> {
  const result = await migrate(await session.store());
  session.output.data(result, ({ applied, newer }) => {
    if (newer.length > 0) return `Schema and views are of a newer release (${newer.join(", ")}) and stay so.`;
    return applied.length === 0
      ? "Schema and views are up to date."
      : `Applied ${applied.join(", ")}; views are up to date.`;
  });
  if (result.missingRoles.length === 0) return;
  session.output.note(
    `This role may not create roles. A superuser must run, and then migrate once more:\n  ${result.missingRoles.join("\n  ")}`,
  );
}
