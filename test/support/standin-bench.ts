import { parse } from "csv-parse/sync";
import { onTestFinished } from "vitest";
import { type Standin, type StandinOptions, startStandin } from "../../src/local/standin/server.ts";

const GRANULAR_USAGE = "/api/v1/orgs/current/billing/granular-usage";
/** The clock of these tests: a Wednesday, within an hour. */
const NOW = Date.parse("2026-09-16T13:25:00Z");

interface Ask {
  start: string | number;
  end: string | number;
  /** Ids; default: every workspace, readable or not. */
  workspaces?: readonly string[];
  by?: string;
  more?: Record<string, string>;
}

interface UsageAnswer {
  stride: { days: number; hours: number };
  usage: {
    time_bucket: string;
    dimensions: Record<string, string | null>;
    traces: number;
    [measure: string]: unknown;
  }[];
}

interface Bench {
  readonly standin: Standin;
  /** The path and query that ask for this. */
  target(ask: Ask, csv?: "/export"): string;
  get(target: string, headers?: Record<string, string>): Promise<Response>;
  usage(ask: Ask): Promise<UsageAnswer>;
  /** Data lines of the export, by column name. */
  csv(ask: Ask): Promise<Record<string, string>[]>;
}

export async function setup(options: StandinOptions = {}): Promise<Bench> {
  const standin = await startStandin({ now: () => NOW, ...options });
  onTestFinished(() => standin.close());
  const target: Bench["target"] = ({ start, end, workspaces, by, more }, csv) => {
    const query = new URLSearchParams(more);
    query.set("start_time", iso(start));
    query.set("end_time", iso(end));
    for (const id of workspaces ?? standin.organisation.workspaces.map((one) => one.id)) {
      query.append("workspace_ids", id);
    }
    if (by !== undefined) query.set("group_by", by);
    return `${GRANULAR_USAGE}${csv ?? ""}?${query}`;
  };
  const get: Bench["get"] = (path, headers) =>
    fetch(standin.url + path, { headers: { "x-api-key": standin.apiKey, ...headers } });
  return {
    standin,
    target,
    get,
    usage: async (ask) => (await whole(await get(target(ask)))).json() as Promise<UsageAnswer>,
    csv: async (ask) =>
      parse(await (await whole(await get(target(ask, "/export")))).text(), { columns: true }),
  };
}

export const sum = (answer: UsageAnswer): number => answer.usage.reduce((all, { traces }) => all + traces, 0);

function iso(at: string | number): string {
  return typeof at === "number" ? new Date(at).toISOString() : at;
}

async function whole(response: Response): Promise<Response> {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()} from ${response.url}`);
  return response;
}
