import type { Command } from "commander";
import { EtlError } from "../errors.ts";
import { factsOf, type LearnedFact } from "../store/facts.ts";
import { serverFacts } from "../store/overview.ts";
import { EXIT } from "./exit.ts";
import { inSession, requireSchema, type Session } from "./session.ts";

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
    .description("check the database, the platform and the key, and show what was learned of the server")
    .action(inSession(doctor));
}

async function doctor(session: Session): Promise<number> {
  const findings: Finding[] = [];
  const { output } = session;
  const store = await session.store();
  const server = await serverFacts(store.db);
  findings.push({
    ok: server.number >= OLDEST_POSTGRES,
    subject: "postgres",
    finding: `version ${server.version}${server.number >= OLDEST_POSTGRES ? "" : ": 15 or later is needed"}`,
  });
  await requireSchema(store);
  findings.push({
    ok: server.hasReader,
    subject: "postgres",
    finding: server.hasReader
      ? "schema up to date, role usage_reader is there"
      : "role usage_reader is missing: `usage-etl migrate` prints what to run",
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
      for (const fact of await factsOf(source.store.db, source.sourceId)) {
        findings.push({ ok: true, subject: slug, finding: describeFact(fact) });
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

const FACTS: Readonly<Record<string, string>> = {
  no_listing: "does not list its workspaces",
  no_future_end: "refuses an end in the future: today's figure comes from its hours",
};

function describeFact({ fact, evidence, learnedAt }: LearnedFact): string {
  const meaning =
    FACTS[fact] ?? `never answers in ${fact.slice("no_".length)} buckets: that stride is not available`;
  return `learned on ${learnedAt.toISOString().slice(0, 10)}: ${meaning} (${evidence})`;
}
