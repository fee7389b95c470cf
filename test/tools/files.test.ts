import { cp, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkFiles, type Manifest } from "../../src/features/export/manifest.ts";
import { openPlace, type Place } from "../../src/features/export/place.ts";
import { dice } from "../../src/features/standin/engine/random.ts";
import { usageEtl } from "../support/cli.ts";
import { seed } from "../support/drawn.ts";
import { connectPlain, WORKSPACES } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";
import { startBucketServer } from "./bucket-server.ts";
import {
  DAY_MS,
  dayAfter,
  FIRST,
  manifestOf,
  PROJECTS,
  SECOND,
  setupFiles,
  signal,
  wrongFiles,
} from "./files.ts";
import { DUCKDBS, killedBefore, openFilesOf, readViews, readWithDuckDb, withEngine } from "./warehouse.ts";

const STEPS = 5;
const SEED = seed(20_261_122);

test(`files hold what the views show, and a killed writer leaves the last set whole (seed ${SEED})`, async () => {
  const { url, folder, place, write, load } = await setupFiles();
  const { below: pick, some } = dice(SEED);
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await write();
  let shown = await readWithDuckDb(url, folder, await manifestOf(place));
  let isKilledBeforeEnd = 0;
  for (let step = 0; step < STEPS; step++) {
    const day = dayAfter(Date.parse(FIRST), pick(40));
    const at = pick(2);
    const projects = some(PROJECTS, pick(3)).map((id): [string, number] => [id, 1 + pick(9)]);
    await load("project", day, projects, at);
    await load("workspace", day, [[WORKSPACES[at] as string, pick(30)]], at);
    const before = await manifestOf(place);
    const killed = await write({ place: killedBefore(place, pick(24)), keepMs: pick(2) * DAY_MS }).catch(
      () => undefined,
    );
    expect(await openFilesOf(folder)).toEqual([]);
    expect(await wrongFiles(place)).toEqual([]);
    const now = await manifestOf(place);
    if (now.as_of === before.as_of) {
      isKilledBeforeEnd++;
      expect(killed).toBeUndefined();
      expect(await readWithDuckDb(url, folder, now)).toEqual(shown);
    }
    await write({ keepMs: pick(2) * DAY_MS, ...(step === STEPS - 1 ? { views: [] } : {}) });
    expect(await wrongFiles(place)).toEqual([]);
    const manifest = await manifestOf(place);
    shown = await readWithDuckDb(url, folder, manifest);
    expect(shown).toEqual(await readViews(url, manifest));
  }
  expect(isKilledBeforeEnd).toBeGreaterThan(0);
  expect(shown.get("fct_cost_by_id_daily")?.length).toBeGreaterThan(0);
  expect(shown.size).toBeGreaterThan(15);
});

test("a writer that cannot end its files closes them and takes them away", async () => {
  const { folder, place, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  let created = 0;
  const full: Place = {
    ...place,
    async create(name) {
      created++;
      const file = await place.create(name);
      return { ...file, commit: () => Promise.reject(new Error("no space is left")) };
    },
  };
  await expect(write({ place: full })).rejects.toThrow("no space is left");
  expect(created).toBeGreaterThan(1);
  await mkdir(join(folder, "a-folder-has-this-name"));
  const file = await place.create("a-folder-has-this-name");
  await expect(file.commit()).rejects.toMatchObject({ code: "files_place_refused" });
  await file.abandon();
  expect(await openFilesOf(folder)).toEqual([]);
  const left = await readdir(folder, { recursive: true, withFileTypes: true });
  expect(left.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([]);
});

test("only months whose figures changed are written again, and old files go after their time", async () => {
  const { folder, place, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await load("workspace", SECOND, [[WORKSPACES[0], 8]]);
  const first = await write({ views: ["fct_usage_workspace_daily", "dim_workspace"] });
  const before = await manifestOf(place);
  expect(await write({ views: ["fct_usage_workspace_daily"] })).toMatchObject({ written: 0, removed: 0 });
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  expect(await write({ views: ["fct_usage_workspace_daily"] })).toMatchObject({ written: 0 });
  await load("workspace", SECOND, [[WORKSPACES[0], 9]]);
  const second = await write({ views: ["fct_usage_workspace_daily"] });
  expect(second).toMatchObject({ written: 1, removed: 0, rows: (first?.rows ?? 0) - WORKSPACES.length });
  const fileOf = ({ datasets }: Manifest, day: string) =>
    datasets.fct_usage_workspace_daily?.files.find(({ month }) => month === day.slice(0, 7));
  const after = await manifestOf(place);
  expect(fileOf(after, SECOND)).toMatchObject({
    sums: { traces: "9" },
    is_final: false,
    coverage: ["missing", "ok"],
  });
  expect(after.replaced.map(({ path }) => path).sort()).toEqual(
    [
      fileOf(before, SECOND)?.path,
      before.datasets.dim_workspace?.files[0]?.path,
    ].sort() as unknown as string[],
  );
  expect((await checkFiles(place, before, { signal })).wrong).toEqual([]);
  await writeFile(join(folder, "fct_usage_workspace_daily", "notes.txt"), "not ours");
  expect(await write({ views: ["fct_usage_workspace_daily"], keepMs: 0 })).toMatchObject({ removed: 2 });
  expect((await checkFiles(place, before, { signal })).wrong).toHaveLength(2);
  expect(await readdir(join(folder, "fct_usage_workspace_daily"))).toContain("notes.txt");
  await rm(join(folder, fileOf(after, FIRST)?.path ?? ""));
  await writeFile(join(folder, fileOf(after, SECOND)?.path ?? ""), "cut");
  expect(await wrongFiles(place)).toHaveLength(2);
  expect(await write({ views: ["fct_usage_workspace_daily"] })).toMatchObject({ written: 2 });
  expect(await wrongFiles(place)).toEqual([]);
});

test("a bucket holds the same files, and what keeps it from being written is said", async () => {
  const { folder, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await write();
  await startBucketServer();
  const bucket = await openPlace("s3://usage/warehouse", { signal });
  expect(await write({ place: bucket })).toMatchObject({ removed: 0 });
  expect(await write({ place: bucket })).toMatchObject({ written: 0 });
  const manifest = await manifestOf(bucket);
  expect(manifest.datasets).toMatchObject(
    JSON.parse(
      JSON.stringify((await manifestOf(await openPlace(folder, { signal }))).datasets),
      (key, value) =>
        key === "written_at" || key === "sha256" || key === "bytes" ? expect.anything() : value,
    ),
  );
  expect(await wrongFiles(bucket)).toEqual([]);
  await load("workspace", FIRST, [[WORKSPACES[0], 8]]);
  await write({ place: bucket, keepMs: 0 });
  expect(await wrongFiles(bucket)).toEqual([]);
  const missing = await openPlace("s3://nobody-has-it", { signal });
  await expect(write({ place: missing })).rejects.toMatchObject({
    code: "files_place_refused",
    message: expect.stringContaining("NoSuchBucket"),
  });
  process.env.AWS_ACCESS_KEY_ID = "nobody";
  const refused = await openPlace("s3://usage/warehouse", { signal });
  const error = await write({ place: refused }).catch((cause) => cause);
  expect(error).toMatchObject({ code: "files_place_refused" });
  expect(`${error.message}${error.next}`).not.toMatch(/nobody|of-tests/);
});

test("the command writes, checks, and says what is wrong", async () => {
  const { url, folder, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  const run = (args: string[], environment: Record<string, string> = {}) =>
    usageEtl(["files", ...args], { DATABASE_URL: url, ...environment });
  const to = join(folder, "new", "folder");
  const views = { USAGE_EXPORT_VIEWS: "fct_usage_workspace_daily", USAGE_EXPORT_DIR: to };
  const wrote = await run(["write", "--json"], views);
  expect([wrote.code, JSON.parse(wrote.stdout)]).toEqual([
    0,
    [expect.objectContaining({ source: "default", removed: 0 })],
  ]);
  expect(await run(["check"], views)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("all match"),
  });
  const copy = join(folder, "copy");
  await cp(join(to, "manifest"), join(copy, "manifest"), { recursive: true });
  expect(await run(["check", "--to", copy], views)).toMatchObject({
    code: 4,
    stdout: expect.stringContaining("missing fct_usage_workspace_daily/default/"),
  });
  const misnamed = await run(["write"], { ...views, USAGE_EXPORT_VIEWS: "fct_usage_workspace_hourly" });
  expect([misnamed.code, misnamed.stderr]).toEqual([2, expect.stringContaining("files_view_unusable")]);
});

test("a view without rows has its columns and types, and a wider column is written again", async () => {
  const { url, folder, place, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  const client = await connectPlain(url);
  const create = (type: string) =>
    client.query(
      `DROP VIEW IF EXISTS reporting_detail.of_a_customer;
       CREATE VIEW reporting_detail.of_a_customer AS
       SELECT source_id, usage_date, traces::${type} AS traces
       FROM (SELECT source_id, usage_date, traces FROM reporting.fct_usage_workspace_daily
             UNION ALL SELECT 'default', unnest('{2019-12-31,2099-01-01}'::date[]), 1)`,
    );
  const views = ["dim_tag", "fct_other_usage_daily", "of_a_customer"];
  const typesIn = async (view: string) => {
    const files = { folder, manifest: await manifestOf(place) };
    return Promise.all(
      DUCKDBS.map((engine) =>
        withEngine(engine, url, files, async (run) => {
          const { rows } = await run(`SELECT column_name, column_type FROM (DESCRIBE ${inSchema(view)})`);
          return Object.fromEntries(rows);
        }),
      ),
    );
  };
  await create("numeric(20,4)");
  await write({ views });
  const [tag] = (await manifestOf(place)).datasets.dim_tag?.files ?? [];
  expect(tag).toMatchObject({ rows: 0, month: null });
  for (const types of await typesIn("dim_tag"))
    expect(types).toMatchObject({ source_id: "VARCHAR", valid_from: "DATE", tag_value: "VARCHAR" });
  for (const types of await typesIn("fct_other_usage_daily"))
    expect(types).toMatchObject({
      usage_date: "DATE",
      quantity: expect.stringContaining("DECIMAL"),
      is_final: "BOOLEAN",
    });
  for (const types of await typesIn("of_a_customer")) expect(types.traces).toBe("DECIMAL(20,4)");
  const manifest = await manifestOf(place);
  expect(await readWithDuckDb(url, folder, manifest)).toEqual(await readViews(url, manifest));
  expect(await write({ views })).toMatchObject({ written: 0 });
  await create("numeric(22,4)");
  await write({ views });
  for (const types of await typesIn("of_a_customer")) expect(types.traces).toBe("DECIMAL(22,4)");
  expect((await manifestOf(place)).datasets.of_a_customer?.columns.at(-1)).toEqual({
    name: "traces",
    type: "numeric",
    precision: 22,
    scale: 4,
  });
});

test("a bucket has a large file in parts, which it joins or forgets", async () => {
  await startBucketServer();
  const bucket = await openPlace("s3://usage/warehouse", { signal });
  const chunks = [5, 6, 7, 1, 2].map((mebibytes, at) => new Uint8Array(mebibytes * 2 ** 20).fill(at));
  const write = async (name: string) => {
    const file = await bucket.create(name);
    for (const chunk of chunks) await file.write(chunk);
    return file;
  };
  const large = await write("large");
  expect(await bucket.read("large")).toBeUndefined();
  await large.commit();
  await large.abandon();
  expect(Buffer.compare((await bucket.read("large")) ?? Buffer.alloc(0), Buffer.concat(chunks))).toBe(0);
  await (await write("abandoned")).abandon();
  expect([...(await bucket.list("")).keys()]).toEqual(["large"]);
});
