import { Argument, type Command } from "commander";
import { listViews } from "../../store/report/views.ts";
import { dbtKeyTest, dbtSources } from "../export/dbt-files.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

const FILES = { sources: dbtSources, keys: dbtKeyTest };

export function addDbtCommand(program: Command): void {
  program
    .command("dbt")
    .description("files for a dbt project, made from the comments and keys of the views in this database")
    .addArgument(
      new Argument("<file>", "sources: models/sources.yml; keys: tests/usage_keys_are_unique.sql").choices(
        Object.keys(FILES),
      ),
    )
    .action(inSession(run));
}

async function run({ output, ...session }: Session, _: object, file = ""): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
  const text = FILES[file as keyof typeof FILES](await listViews(store.db));
  output.data({ text }, () => text.trimEnd());
}
