import { expect, test } from "vitest";
import { runHere } from "../../support/in-process.ts";
import { envOf, withDefaults } from "../../support/session-settings.ts";
import { setup } from "../../support/source.ts";

/** Defaults that may be overridden: test/e2e/session-settings.test.ts. */

test.each([
  ["session_replication_role", "replica", 2],
  ["default_transaction_read_only", "on", 6],
])("a default of %s that nobody may override is refused by name", async (name, value, exit) => {
  const { databaseUrl, standin } = await setup({ workspaces: [0], days: 5, standin: { scale: 0.3 } });
  const { code, stderr } = await withDefaults(
    databaseUrl,
    { level: "role", settings: { [name]: value } },
    (url) => runHere(["sync", "--inline", "--json"], envOf(url, standin)),
  );
  expect([code, stderr]).toEqual([exit, expect.stringContaining(name)]);
});
