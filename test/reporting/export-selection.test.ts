import { beforeAll, describe, expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { openStore, type Store } from "../../src/core/store/db/database.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { type SelectionOptions, selectionOf } from "../../src/features/export/selection.ts";
import { copyRows, csvForm } from "../../src/features/export/view-rows.store.ts";
import { EXIT, exitCodeOf } from "../../src/terminal/exit.ts";
import { usageEtl } from "../support/cli.ts";
import { now } from "../support/clock.ts";
import { createTestDatabase, pastPooler } from "../support/database.ts";
import { addSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

const [ALPHA, OTHER] = WORKSPACES;
const THIRD = "00000000-0000-4000-8000-000000000003";
const USER = "12345678-0000-4000-8000-00000000000b";
const EMAIL = "jane.doe@example.test";
const HOUR_MS = 3_600_000;

let urls: { owner: string; reader: string; masked: string; nobody: string };
let owner: Store;
const readers = new Map<string, Store>();

beforeAll(async () => {
  const { url, drop } = await createTestDatabase();
  const direct = await pastPooler(url);
  const as = (role: string) => `${direct}${direct.includes("?") ? "&" : "?"}options=-c%20role%3D${role}`;
  urls = {
    owner: url,
    reader: as("usage_reader"),
    masked: as("usage_reader_masked"),
    nobody: as("pg_monitor"),
  };
  owner = openStore({ url });
  await migrate(owner);
  const sourceId = await addSource(owner, { slug: "default", workspaceIds: [ALPHA, OTHER, THIRD] });
  const names: Record<string, string> = { [ALPHA]: "alpha's = 1", [OTHER]: "twin", [THIRD]: "twin" };
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of [ALPHA, OTHER, THIRD]) {
      const id = groupBy === "workspace" ? workspaceId : groupBy === "user" ? USER : `=${groupBy}`;
      const name = groupBy === "workspace" ? names[workspaceId] : groupBy === "user" ? EMAIL : "named";
      await loadRows(owner, {
        sourceId,
        workspaceId,
        groupBy,
        window: windowOf("day", "2026-03-01", "2026-03-02"),
        rows: [["2026-03-01", id, workspaceId === ALPHA ? 7 : 3, name ?? ""]],
      });
    }
  }
  await owner.transaction(({ client }) =>
    client.query("UPDATE usage.became_final SET final_at = now() - interval '3 hours'"),
  );
  for (const [role, to] of Object.entries(urls)) readers.set(role, openStore({ url: to, maxConnections: 2 }));
  return async () => {
    for (const store of [owner, ...readers.values()]) await store.close();
    await drop();
  };
});

const command = (role: keyof typeof urls, ...args: string[]) => usageEtl(args, { DATABASE_URL: urls[role] });

async function linesOf(
  role: keyof typeof urls,
  { guard = true, ...options }: SelectionOptions & { guard?: boolean },
): Promise<string[]> {
  const store = readers.get(role) as Store;
  const selection = await selectionOf(store.db, options);
  const wanted = { ...selection, store, url: urls[role], signal: new AbortController().signal };
  const pieces: Uint8Array[] = [];
  const rows = await copyRows(wanted, csvForm(wanted, { guard }), async (piece) => void pieces.push(piece));
  const lines = Buffer.concat(pieces).toString().trimEnd().split("\n").slice(1);
  expect(lines.length).toBe(rows);
  return lines;
}

const refusal = (role: keyof typeof urls, options: SelectionOptions) =>
  linesOf(role, options).then(
    (lines) => `not refused: ${lines.length} lines`,
    ({ code, message, next }) => `${code}: ${message} ${next}`,
  );

describe("a login that may only read", () => {
  test("exports with nothing but DATABASE_URL", async () => {
    const columns = "workspace_id,user_id,traces";
    const view = ["--view", "fct_usage_user_daily", "--columns", columns, "--where", "traces=7"];
    const said = await command("masked", "export", ...view);
    expect([said.code, said.stdout], said.stderr).toEqual([0, `${columns}\n${ALPHA},${USER},7\n`]);
    expect(await refusal("masked", { view: "dim_user" })).toContain("view_denied: The login");
  });
});

describe("--where", () => {
  const view = "usage_record";
  const columns = "group_by,workspace_id,traces";

  test("keeps rows with one of the values of each column", async () => {
    const where = (...pairs: [string, string][]) => linesOf("reader", { view, columns, where: pairs });
    expect(await where(["group_by", "project"])).toEqual([
      `project,${ALPHA},7`,
      `project,${OTHER},3`,
      `project,${THIRD},3`,
    ]);
    expect(await where(["group_by", "project"], ["group_by", "user"], ["traces", "7"])).toEqual([
      `project,${ALPHA},7`,
      `user,${ALPHA},7`,
    ]);
    expect(await where(["period_start", "2026-03-01"], ["is_final", "yes"], ["traces", "007"])).toHaveLength(
      4,
    );
    expect(await where(["period_start", "2026-03-01T09:00+09:00"], ["is_final", "false"])).toEqual([]);
    expect(
      await linesOf("reader", { view, columns: "traces", where: [["dimension_id", "=project"]] }),
    ).toEqual(["7", "3", "3"]);
  });

  test("takes any text as a value and none as SQL", async () => {
    for (const text of [
      "' OR true --",
      "'; DROP VIEW reporting.dim_date; --",
      '"',
      "\\",
      "$1",
      "%s",
      "営業",
      "a=b",
    ])
      expect(await linesOf("reader", { view: "dim_workspace", where: [["workspace_name", text]] })).toEqual(
        [],
      );
    const found = await linesOf("reader", {
      view: "dim_workspace",
      columns: "workspace_id",
      where: [["workspace_name", "alpha's = 1"]],
    });
    expect(found).toEqual([ALPHA]);
  });
});

describe("--as-of", () => {
  const view = "usage_daily_as_of";
  const columns = "usage_date,workspace_id,dimension_id,traces";

  test("gives what was final at the instant", async () => {
    const asOf = now() - 2 * HOUR_MS;
    const where = [["group_by", "project"]] as const;
    expect(await linesOf("reader", { view, columns, asOf, workspace: [ALPHA], where })).toEqual([
      `2026-03-01,${ALPHA},'=project,7`,
    ]);
    expect(await linesOf("reader", { view, columns, asOf: asOf - 2 * HOUR_MS })).toEqual([]);
  });

  test("is refused where it makes no sense, before anything is written", async () => {
    expect(await refusal("reader", { view })).toContain(`as_of_misplaced: ${view} needs an instant.`);
    expect(await refusal("reader", { view: "dim_date", asOf: 0 })).toContain(
      "as_of_misplaced: dim_date shows what is stored now",
    );
    const early = await command("reader", "export", "--view", view, "--as-of", "2099-01-01T00:00");
    expect([early.code, early.stdout]).toEqual([2, ""]);
    expect(early.stderr).toMatch(/running loads may still change this instant.*\n.*\[as_of_refused\]/s);
  });
});

test("an export whose connection is lost midway fails, whatever was written", async () => {
  const store = readers.get("reader") as Store;
  const selection = await selectionOf(store.db, { view: "dim_date" });
  const wanted = { ...selection, store, url: urls.reader, signal: new AbortController().signal };
  let pieces = 0;
  const write = async () => {
    pieces++;
    if (pieces > 1) return;
    const { rowCount } = await owner.transaction(({ client }) =>
      client.query(`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE application_name = 'usage-etl export' AND datname = current_database()`),
    );
    expect(rowCount).toBe(1);
  };
  const form = { query: "SELECT generate_series(1, 100000000)", options: "FORMAT csv" };
  const error = await copyRows(wanted, form, write).catch((reason) => reason);
  expect([error.code, exitCodeOf(error)]).toEqual(["export_interrupted", EXIT.unreachable]);
});
