import type { Command } from "commander";
import { EtlError } from "../../errors.ts";
import { dataStartProblem } from "../../pipeline/source/data-start.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { syncBudget } from "../../pipeline/sync/sync-budget.ts";
import { capabilitiesOf, type LearnedCapability } from "../../store/catalog/server-capabilities.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { serverCapabilities } from "../../store/report/overview.ts";
import { listedOnly } from "../../store/report/zeros.ts";
import { describeFinality, finalityOf } from "../report/lateness-report.ts";
import { instant } from "../report/output.ts";
import { describeListedOnly } from "../report/zeros-report.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

/** Postgres 15 is the first with MERGE. */
const OLDEST_POSTGRES = 150_000;

interface Finding {
  readonly ok: boolean;
  readonly subject: string;
  readonly finding: string;
}

export function define(command: Command): void {
  command.action(inSession(doctor));
}

async function doctor(session: Session): Promise<number> {
  const findings: Finding[] = [];
  const add = (subject: string, finding: string, ok = true) => void findings.push({ ok, subject, finding });
  const { output } = session;
  const store = await session.store();
  const server = await serverCapabilities(store.db);
  const isRecent = server.number >= OLDEST_POSTGRES;
  add("postgres", `version ${server.version}${isRecent ? "" : " is too old: use 15 or later"}`, isRecent);
  await requireSchema(store);
  add(
    "postgres",
    server.hasReaders
      ? "the schema is up to date; roles usage_reader and usage_reader_masked exist"
      : "a reader role is missing: `usage-etl migrate` prints the SQL to run",
    server.hasReaders,
  );
  let exit: number = EXIT.done;
  try {
    exit = await session.eachSource(async (source) => {
      await examine(source, (finding, ok) => add(source.config.slug, finding, ok));
      return EXIT.done;
    });
  } catch (error) {
    if (error instanceof EtlError) add("source", error.message, false);
    output.data(findings, describeFindings);
    throw error;
  }
  output.data(findings, describeFindings);
  return findings.every(({ ok }) => ok) ? exit : exit || EXIT.usage;
}

async function examine(source: OpenSource, add: (finding: string, ok?: boolean) => void): Promise<void> {
  const { billing, config, settings, sourceId, signal } = source;
  const { db } = source.store;
  const version = (await billing.info({ signal }))?.version;
  add(
    `${config.baseUrl} answers${version == null ? "" : `, version ${version}`}; the key reads ${source.workspaces.length} workspaces`,
  );
  const stored = instant(source.dataStart).slice(0, 10);
  const start = dataStartProblem(config.slug, { stored, configured: config.dataStart });
  if (start !== undefined) add(`${start.message} ${start.next} [${start.code}]`, false);
  const { needed, allowed, problem } = syncBudget(source, await storeNow(db));
  if (problem === undefined) {
    add(`a sync needs ${needed} requests; the rate limit allows ${allowed} before the next sync`);
  } else {
    add(`${problem.message} ${problem.next} [${problem.code}]`, false);
  }
  for (const capability of await capabilitiesOf(db, sourceId)) add(describeCapability(capability));
  const { settleAfterMs } = settings;
  const finality = await finalityOf(db, { sourceId, settleAfterMs });
  for (const line of describeFinality(finality, settleAfterMs)) add(line);
  for (const line of describeListedOnly(await listedOnly(db, sourceId))) add(line);
}

function describeFindings(findings: readonly Finding[]): string {
  return findings
    .map(({ ok, subject, finding }) => `${ok ? "ok " : "!! "} ${subject}: ${finding}`)
    .join("\n");
}

const MEANINGS: Readonly<Record<string, string>> = {
  no_listing: "the server does not list workspaces",
  no_future_end: "the server refuses an end in the future; today's count is the sum of its hours",
};

function describeCapability({ capability, evidence, learnedAt }: LearnedCapability): string {
  const meaning =
    MEANINGS[capability] ??
    `the server never answers in ${capability.slice("no_".length)} buckets; that stride is not available`;
  return `learned on ${learnedAt.toISOString().slice(0, 10)}: ${meaning} (${evidence})`;
}
