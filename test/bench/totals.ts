import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { table } from "../../src/cli/report/output.ts";
import { systemClock } from "../../src/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { DAY_MS, floorToGrid } from "../../src/domain/time/stride.ts";
import { type Standin, startStandin } from "../../src/local/standin/server.ts";
import { runInline } from "../../src/pipeline/extract/run-inline.ts";
import { checkTotals } from "../../src/pipeline/proof/check-totals.ts";
import { openSource } from "../../src/pipeline/source/open-source.ts";
import { planSource } from "../../src/pipeline/sync/plan.ts";
import { billingClientOf } from "../../src/platform/clients.ts";
import { openStore } from "../../src/store/db/database.ts";
import type { Databases } from "./databases.ts";

/** A year of days of so many workspaces, loaded, proved, and proved again after one day of one project was restated. */
export async function checkYear(databases: Databases, workspaces: number): Promise<string> {
  const today = floorToGrid(Date.now(), DAY_MS);
  const dataStart = new Date(today - 365 * DAY_MS).toISOString().slice(0, 10);
  const standin = await startStandin({ dataStart });
  growTo(standin, workspaces);
  const databaseUrl = await databases.create();
  const store = openStore({ url: databaseUrl });
  const config = {
    slug: "default",
    baseUrl: standin.url,
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    workspaceIds: [],
    dataStart,
    rateLimit: 1_000_000,
  };
  const billing = billingClientOf(config);
  try {
    const source = await openSource({
      store,
      billing,
      config,
      settings: {
        settleAfterMs: 3 * DAY_MS,
        hourlyForMs: DAY_MS,
        syncEveryMs: 900_000,
        userEmail: "keep",
        meters: ["traces"],
      },
      log: pino({ level: "silent" }),
      clock: systemClock,
      attempts: 1,
      admit: async () => {},
    });
    const lines: (string | number)[][] = [];
    const measure = async (
      what: string,
      work: () => Promise<{ requests: number; proved: number; restated: number }>,
    ) => {
      const start = performance.now();
      const { requests, proved, restated } = await work();
      lines.push([what, requests, proved, restated, ((performance.now() - start) / 1000).toFixed(1)]);
    };
    await measure("load of the days", async () => {
      const range = { start: source.dataStart, end: today };
      const { counts } = await runInline(
        source,
        await planSource(source, { wanted: [{ stride: "day", range }], reprocess: "all" }),
      );
      return { requests: counts.reduce((sum, one) => sum + one.requests, 0), proved: 0, restated: 0 };
    });
    const check = async () => {
      const { requests, daysProved, restated, differences } = await checkTotals(source, "all");
      if (differences > 0) throw new Error(`${differences} differences on a clean platform`);
      return { requests, proved: daysProved, restated };
    };
    await measure("check of the year", check);
    const [stream] = standin.organisation.streams.filter((one) => one.weight > 0);
    if (stream !== undefined) standin.ledger.change({ ...stream, at: today - 100 * DAY_MS }, 5);
    await measure("check after one restatement", check);
    return `Control totals of a year, ${workspaces} workspaces, all groupings\n${table(
      ["what", "requests", "days x scopes proved", "restated", "seconds"],
      lines,
    )}`;
  } finally {
    await billing.close();
    await store.close();
    await standin.close();
    await databases.drop(databaseUrl);
  }
}

/** Copies of the organisation's busiest workspace, until there are so many. */
function growTo({ organisation }: Standin, count: number): void {
  const { workspaces, projects, streams } = organisation;
  const model = workspaces.find((one) => streams.some((s) => s.project.workspace === one && s.weight > 0));
  const copied = streams.filter((stream) => stream.project.workspace === model);
  while (workspaces.length < count && model !== undefined) {
    const workspace = { ...model, id: randomUUID(), name: `copy ${workspaces.length}` };
    workspaces.push(workspace);
    const copies = new Map(
      copied.map(({ project }) => [project, { ...project, id: randomUUID(), workspace }]),
    );
    projects.push(...copies.values());
    for (const stream of copied) {
      streams.push({
        ...stream,
        index: streams.length,
        project: copies.get(stream.project) ?? stream.project,
      });
    }
  }
}
