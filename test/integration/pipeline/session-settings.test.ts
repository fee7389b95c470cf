import { expect, test } from "vitest";
import { runHere } from "../../support/in-process.ts";
import { differences, envOf, ODD, stored, withDefaults, writings } from "../../support/session-settings.ts";
import { setup } from "../../support/source.ts";

/** test/e2e/session-settings.test.ts has every setting, command, page and tool. */

const options = { workspaces: [0], days: 5, standin: { scale: 0.3 } };
const SHORT = { isShort: true };

test("odd defaults of a login change neither what sync and reconcile print nor what they store", async () => {
  const bench = await setup(options);
  const printed = await writings(bench, bench.databaseUrl, SHORT);
  const odd = await setup({ ...options, now: bench.now });
  const run = (url: string) => writings(odd, url, SHORT);
  const printedOdd = await withDefaults(odd.databaseUrl, { level: "role", settings: ODD }, run);
  expect(differences(printed, printedOdd)).toEqual([]);
  expect(differences(await stored(bench), await stored(odd))).toEqual([]);
});

test.each([
  ["session_replication_role", "replica", 2],
  ["default_transaction_read_only", "on", 6],
])("a default of %s that nobody may override is refused by name", async (name, value, exit) => {
  const { databaseUrl, standin } = await setup(options);
  const { code, stderr } = await withDefaults(
    databaseUrl,
    { level: "role", settings: { [name]: value } },
    (url) => runHere(["sync", "--inline", "--json"], envOf(url, standin)),
  );
  expect([code, stderr]).toEqual([exit, expect.stringContaining(name)]);
});
