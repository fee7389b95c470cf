import { expect, test } from "vitest";
import { bench, document, envOf, run } from "../support/program.ts";

const TYPO = "00000000-0000-4000-8000-00000000dead";

test("a typo in USAGE_WORKSPACE_IDS is refused; what was accepted by force can be forgotten", async () => {
  const made = await bench({ workspaces: [0], days: 2 });
  const [id = ""] = made.workspaceIds;
  const env = envOf(made);
  const wrong = { ...env, USAGE_WORKSPACE_IDS: `${id},${TYPO}` };
  const refused = await run(["sync", "--inline"], wrong);
  expect([refused.code, refused.stdout]).toEqual([2, ""]);
  expect(refused.stderr).toContain(`${TYPO}, which the platform does not show`);
  expect(refused.stderr).toContain("[workspace_not_shown]");
  expect((await run(["workspace", "add", TYPO], env)).code).toBe(2);

  const forced = await run(["workspace", "add", TYPO, "--force"], env);
  expect(forced.stderr + forced.stdout).toMatch(
    new RegExp(`Source default knows ${TYPO} now[\\s\\S]*add ${TYPO} to USAGE_WORKSPACE_IDS`),
  );
  expect((await run(["sync", "--inline"], wrong)).code).toBe(3);
  const listed = await run(["workspace", "list"], wrong);
  expect(listed.stdout).toMatch(new RegExp(`${TYPO}\\s+never shown\\s+-\\s+-`));
  expect(listed.stdout).toMatch(new RegExp(`${id}\\s+readable\\s+[\\d,]+`));
  for (const line of listed.stdout.split("\n").slice(0, 3)) expect(line.length).toBeLessThanOrEqual(80);

  const configured = await run(["workspace", "forget", TYPO], wrong);
  expect([configured.code, configured.stderr]).toEqual([
    2,
    expect.stringContaining("[workspace_configured]"),
  ]);
  const dry = await run(["workspace", "forget", TYPO, "--dry-run"], env);
  expect(dry.stdout).toMatch(/With it would go: \d+ kept failures/);
  const [, command = ""] = /`usage-etl (.*)`/.exec(dry.stdout) ?? [];
  const forgotten = await run([...command.split(" "), "--json"], env);
  expect(document(forgotten)).toMatchObject({ workspaceId: TYPO, forgotten: true, held: { records: 0 } });
  expect(document(await run(["workspace", "list", "--json"], env))).toMatchObject([{ workspaceId: id }]);
  const again = await run(["sync", "--inline"], env);
  expect([again.code, again.stderr]).toEqual([0, ""]);

  expect((await run(["source", "forget", "default"], env)).stderr).toContain("[source_configured]");
  const { USAGE_BASE_URL: _, USAGE_API_KEY: __, ...gone } = env;
  expect((await run(["source", "list"], gone)).stdout).toMatch(/default\s+no\s+1\s+0/);
  expect((await run(["source", "forget", "default"], gone)).stderr).toMatch(
    /has [\d,]+ records.*\n.*--with-records/,
  );
  const source = await run(["source", "forget", "default", "--with-records"], gone);
  expect([source.code, source.stdout]).toEqual([
    0,
    expect.stringMatching(/^Source default is forgotten, with /),
  ]);
  expect(document(await run(["source", "list", "--json"], gone))).toEqual([]);
  const actions = await made.sql(
    "SELECT action, detail, source_id, via FROM usage.operator_action WHERE action <> 'sync.start' ORDER BY action_id",
  );
  const kept = { source_id: null, via: "command" };
  expect(actions).toEqual([
    { action: "workspace.add", detail: `workspace ${TYPO}, forced`, ...kept },
    { action: "workspace.forget", detail: `workspace ${TYPO}: 0 records, 0 restatements, 0 prices`, ...kept },
    { action: "source.forget", detail: expect.stringMatching(/^source default: \d+ records, /), ...kept },
  ]);
});
