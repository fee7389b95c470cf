import { expect, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { bench, dayOf, document, envOf, run } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import { setReadable } from "../support/source.ts";
import { wrongFigures } from "../support/tables.ts";

test("a sync whose key loses a workspace shows no zero; status says which, and the next sync after its return loads it", async () => {
  const made = await bench({ workspaces: [0, 1, 4] });
  const { standin, workspaceIds } = made;
  const [, lost, unused] = workspaceIds as [string, string, string];
  // It answers first contact with the workspace, and is lost then.
  const proxy = await startProxy(standin.url, ({ url }) => {
    if (url.pathname === "/api/v1/workspaces") setReadable(standin, 1, false);
    return undefined;
  });
  const env = { ...envOf(made), USAGE_BASE_URL: proxy.url };
  const synced = await run(["sync", "--inline"], env);
  expect([synced.code, synced.stderr]).toEqual([3, expect.stringContaining("zeros_withdrawn")]);
  const shown = await made.sql(
    `SELECT DISTINCT traces, coverage_status FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1`,
    [lost],
  );
  expect(shown).toEqual([{ traces: null, coverage_status: "unverified" }]);
  expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);

  const status = await run(["status", "--json"], env);
  expect([status.code, document(status)]).toMatchObject([
    3,
    [
      {
        lostWorkspaces: [
          {
            ...{ workspaceId: lost, isUnread: false, isUnlisted: true, zeros: 7 * 4, closedMonths: [] },
            ...{ firstDay: dayOf(made.dataStart), lastDay: dayOf(made.dataStart + 6 * DAY_MS) },
          },
        ],
        listedOnly: [{ workspaceId: unused, zeros: 7 * 4 }],
      },
    ],
  ]);
  const text = (await run(["status"], env)).stdout.replaceAll(/\s+/g, " ");
  expect(text).toContain(`Workspace ${lost}: the platform no longer lists it, though it is not deleted.`);
  expect(text).toContain("28 zero values are no longer trusted");
  const alone = `rest on the listing alone, because no answer ever named the workspace: 28 of Sandbox (nobody yet) (${unused})`;
  expect(text).toContain(alone);
  const doctor = await run(["doctor"], env);
  // A configured workspace that the key no longer reads is a failure, by the live listing.
  const said = doctor.stdout.replaceAll(/\s+/g, " ");
  expect([doctor.code, said]).toEqual([2, expect.stringContaining(alone)]);
  expect(said).toMatch(
    new RegExp(`fail workspaces The listing lacks 1 of \\d+ configured workspaces: ${lost}`),
  );

  setReadable(standin, 1, true);
  proxy.rewrite = () => undefined;
  await run(["sync", "--inline"], env);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
  const after = document(await run(["status", "--json"], env));
  expect(after).toMatchObject([{ failures: [], lostWorkspaces: [] }]);

  // Listed as before, and left out of every answer.
  standin.access.listsUnreadable = true;
  setReadable(standin, 1, false);
  expect((await run(["sync", "--inline"], env)).code).toBe(3);
  const again = await run(["status"], env);
  expect(again.code).toBe(3);
  const told = again.stdout.replaceAll(/\s+/g, " ");
  expect(told).toContain(`to do The key lost access to workspace ${lost}. Give it back`);
  expect(told).toContain(`Workspace ${lost}: the key reads no usage of it any more.`);
  const checked = await run(["doctor"], env);
  expect(checked.code).toBe(2);
  expect(checked.stdout.replaceAll(/\s+/g, " ")).toContain(`did not name workspace ${lost}, which had usage`);
});
