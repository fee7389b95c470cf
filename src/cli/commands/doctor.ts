import type { Command } from "commander";
import { EtlError } from "../../errors.ts";
import { syncBudget } from "../../pipeline/sync/sync-budget.ts";
import { capabilitiesOf, type LearnedCapability } from "../../store/catalog/server-capabilities.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { serverCapabilities } from "../../store/report/overview.ts";
import { describeFinality, finalityOf } from "../report/lateness-report.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

/** Postgres 15 is the first with MERGE. */
const OLDEST_POSTGRES = 150_000;

interface Finding {
  readonly ok: boolean;
  readonly subject: string;
  readonly finding: string;
}

export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("check the database, the platform and the key; show the server capabilities")
    .action(inSession(doctor));
}

async function doctor(session: Session): Promise<number> {
  const findings: Finding[] = [];
  const { output } = session;
  const store = await session.store();
  const server = await serverCapabilities(store.db);
  findings.push({
    ok: server.number >= OLDEST_POSTGRES,
    subject: "postgres",
    finding: `version ${server.version}${server.number >= OLDEST_POSTGRES ? "" : " is too old: use 15 or later"}`,
  });
  await requireSchema(store);
  findings.push({
    ok: server.hasReaders,
    subject: "postgres",
    finding: server.hasReaders
      ? "the schema is up to date; roles usage_reader and usage_reader_masked exist"
      : "a reader role is missing: `usage-etl migrate` prints the SQL to run",
  });
  let exit: number = EXIT.done;
  try {
    exit = await session.eachSource(async (source) => {
      const { slug, baseUrl } = source.config;
      const info = await source.billing.info({ signal: source.signal });
      const version = info?.version === undefined || info.version === null ? "" : `, version ${info.version}`;
      findings.push({
        ok: true,
        subject: slug,
        finding: `${baseUrl} answers${version}; the key reads ${source.workspaces.length} workspaces`,
      });
      const { needed, allowed, problem } = syncBudget(source, await storeNow(source.store.db));
      findings.push({
        ok: problem === undefined,
        subject: slug,
        finding:
          problem === undefined
            ? `a sync needs ${needed} requests; the rate limit allows ${allowed} before the next sync`
            : `${problem.message} ${problem.next} [${problem.code}]`,
      });
      for (const capability of await capabilitiesOf(source.store.db, source.sourceId)) {
        findings.push({ ok: true, subject: slug, finding: describeCapability(capability) });
      }
      const { settleAfterMs } = session.config;
      const finality = await finalityOf(source.store.db, { sourceId: source.sourceId, settleAfterMs });
      for (const finding of describeFinality(finality, settleAfterMs)) {
        findings.push({ ok: true, subject: slug, finding });
      }
      return EXIT.done;
    });
  } catch (error) {
    if (error instanceof EtlError) findings.push({ ok: false, subject: "source", finding: error.message });
    output.data(findings, describeFindings);
    throw error;
  }
  output.data(findings, describeFindings);
  return findings.every((finding) => finding.ok) ? exit : exit || EXIT.usage;
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
    MEANINGS[fact] ??
    `the server never answers in ${fact.slice("no_".length)} buckets; that stride is not available`;
  return `learned on ${learnedAt.toISOString().slice(0, 10)}: ${meaning} (${evidence})`;
}
