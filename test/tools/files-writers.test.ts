import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/core/store/db/database.ts";
import { nameOfDatabase } from "../../src/features/export/database-name.store.ts";
import { checkFiles, type Manifest } from "../../src/features/export/manifest.ts";
import { openPlace, type Place } from "../../src/features/export/place.ts";
import { usageEtl } from "../support/cli.ts";
import { pastPooler } from "../support/database.ts";
import { connectPlain, WORKSPACES } from "../support/reporting.ts";
import { FIRST, manifestOf, setupFiles, signal, wrongFiles } from "./files.ts";
import { atManifest, endWriter, readViews, readWithDuckDb } from "./warehouse.ts";

test("a set of another database is replaced only by who says so", async () => {
  const [first, second] = [await setupFiles(), await setupFiles()];
  const views = ["fct_usage_workspace_daily"];
  await first.load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await second.load("workspace", FIRST, [[WORKSPACES[0], 9]]);
  const { folder, place } = first;
  await first.write({ views });
  const set = await manifestOf(place);
  const refusal = { code: "files_of_another_database", message: expect.stringContaining(place.address) };
  await expect(second.write({ place, views })).rejects.toMatchObject(refusal);
  expect(await manifestOf(place)).toEqual(set);
  const elsewhere = await openPlace(join(folder, "elsewhere"), { signal });
  const late = atManifest(
    elsewhere,
    "write",
    async () => void (await first.write({ place: elsewhere, views })),
  );
  await expect(second.write({ place: late, views })).rejects.toMatchObject({ code: refusal.code });
  expect((await manifestOf(elsewhere)).database).toBe(set.database);
  expect(await wrongFiles(elsewhere)).toEqual([]);
  const run = (args: string[]) =>
    usageEtl(args, {
      DATABASE_URL: second.url,
      USAGE_EXPORT_DIR: folder,
      USAGE_EXPORT_VIEWS: views[0] as string,
      USAGE_API_KEY: "lsv2_sk_none",
      USAGE_BASE_URL: "http://127.0.0.1:9",
    });
  expect(await run(["files", "write"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(refusal.code),
  });
  expect((await run(["doctor"])).stdout).toMatch(/fail +files [^[]*\[files_of_another_database\]/);
  expect(await manifestOf(place)).toEqual(set);
  expect(await run(["files", "write", "--take-over"])).toMatchObject({ code: 0 });
  const taken = await manifestOf(place);
  expect(await readWithDuckDb(second.url, folder, taken)).toEqual(await readViews(second.url, taken));
  expect((await checkFiles(place, set, { signal })).wrong).toEqual([]);
  await expect(first.write({ views })).rejects.toMatchObject({ code: refusal.code });
});

test("a database keeps its name where Postgres keeps its identifier to itself, and shares it with none", async () => {
  const [one, two] = [await setupFiles(), await setupFiles()];
  const nameOf = async ({ url }: { url: string }) => {
    const store = openStore({ url });
    onTestFinished(() => store.close());
    return nameOfDatabase(store.db);
  };
  const [name, other] = [await nameOf(one), await nameOf(two)];
  expect(name).toMatch(/^[0-9a-f]{16}$/);
  expect(await nameOf(one)).toBe(name);
  expect(other).not.toBe(name);
  const role = `reader_${name}`;
  const client = await connectPlain(one.url);
  await client.query(
    `create role ${role} login password 'x'; grant usage on schema usage to ${role};
     grant select on usage.source to ${role}; revoke execute on function pg_control_system() from public`,
  );
  onTestFinished(async () => void (await client.query(`drop owned by ${role}; drop role ${role}`)));
  const url = new URL(await pastPooler(one.url));
  Object.assign(url, { username: role, password: "x" });
  const limited = await nameOf({ url: url.href });
  expect(limited).toMatch(/^[0-9a-f]{16}$/);
  expect(limited).not.toBe(name);
  expect(await nameOf({ url: url.href })).toBe(limited);
});

test.each(["create", "write"] as const)(
  "a writer whose lock is lost at the %s of its manifest leaves the newer set of another",
  async (moment) => {
    const { folder, url, place, write, load } = await setupFiles();
    const views = ["fct_usage_workspace_daily"];
    await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
    let newer: Manifest | undefined;
    const late = atManifest(place, moment, async () => {
      await endWriter(url);
      await load("workspace", FIRST, [[WORKSPACES[0], 8]]);
      await write({ views });
      newer = await manifestOf(place);
    });
    await expect(write({ place: late, views })).rejects.toMatchObject({ code: "files_interrupted" });
    const manifest = await manifestOf(place);
    expect(manifest).toEqual(newer);
    expect(await readWithDuckDb(url, folder, manifest)).toEqual(await readViews(url, manifest));
    expect(await wrongFiles(place)).toEqual([]);
  },
);

test("a writer whose lock is lost writes no manifest, though nobody else has written one yet", async () => {
  const { url, place, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  const late = atManifest(place, "write", () => endWriter(url));
  await expect(write({ place: late })).rejects.toMatchObject({ code: "files_interrupted" });
  await expect(manifestOf(place)).rejects.toThrow("there is no manifest");
  expect(await write()).toMatchObject({ removed: 0 });
  expect(await wrongFiles(place)).toEqual([]);
});

test("a writer whose lock is lost while it deletes leaves the files of a newer set", async () => {
  const { folder, url, place, write, load } = await setupFiles();
  const views = ["fct_usage_workspace_daily"];
  const pathOf = async (traces: number) => {
    await load("workspace", FIRST, [[WORKSPACES[0], traces]]);
    await write({ views });
    const { files } = (await manifestOf(place)).datasets.fct_usage_workspace_daily ?? { files: [] };
    return files.find(({ month }) => month === FIRST.slice(0, 7))?.path ?? "";
  };
  const replaced = new Map([
    [await pathOf(7), 7],
    [await pathOf(8), 8],
  ]);
  await load("workspace", FIRST, [[WORKSPACES[0], 9]]);
  const last = replaced.get([...replaced.keys()].sort().at(-1) ?? "") as number;
  let removed = 0;
  let newer: Manifest | undefined;
  const late: Place = {
    ...place,
    async remove(name) {
      await place.remove(name);
      if (++removed > 1) return;
      await endWriter(url);
      await load("workspace", FIRST, [[WORKSPACES[0], last]]);
      expect(await write({ views })).toMatchObject({ written: 1 });
      newer = await manifestOf(place);
    },
  };
  await expect(write({ place: late, views, keepMs: 0 })).rejects.toMatchObject({ code: "files_interrupted" });
  expect(removed).toBe(1);
  const manifest = await manifestOf(place);
  expect(manifest).toEqual(newer);
  expect(await wrongFiles(place)).toEqual([]);
  expect(await readWithDuckDb(url, folder, manifest)).toEqual(await readViews(url, manifest));
});
