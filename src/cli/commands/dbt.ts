import { Argument, type Command } from "commander";
import { listViews } from "../../store/export/views.ts";
import { dbtKeyTest, dbtSources } from "../export/dbt-files.ts";
import { inSession, type Session } from "../session/session.ts";

const FILES = { sources: dbtSources, keys: dbtKeyTest };

export function define(command: Command): void {
  command
    .addArgument(
      new Argument("<file>", "sources: models/sources.yml; keys: tests/usage_keys_are_unique.sql").choices(
        Object.keys(FILES),
      ),
    )
    .action(inSession(run));
}

async function run(session: Session, _: object, file = ""): Promise<undefined> {
  const { db } = await session.store();
  const views = (await listViews(db)).filter(({ isReadable }) => isReadable);
  const text = FILES[file as keyof typeof FILES](views);
  session.output.data({ text }, () => text.trimEnd());
}
