import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { connectPlain } from "../../support/reporting.ts";
import { atEnd } from "../../support/share.ts";
import { temporaryFolder } from "../../support/temporary.ts";
import { venvOf } from "../counterparts.ts";

/** A project of a reader that installs our package from a repository, as docs/dbt/README.md says. */

const PACKAGE = fileURLToPath(new URL("../../../docs/dbt/", import.meta.url));
const PROGRAM = fileURLToPath(new URL("reader.py", import.meta.url));
export const SCHEMAS = { plain: "analytics", masked: "analytics_masked" } as const;

export interface Ran {
  readonly error: string | null;
  readonly results: readonly { name: string; kind: string; status: string; says: string | null }[];
}

export async function setupReader(url: string, environment: string) {
  const folder = temporaryFolder();
  const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
  const git = (...args: string[]) => execFileSync("git", ["-C", join(folder, "repository"), ...args]);
  const published = join(folder, "repository/docs/dbt");
  mkdirSync(published, { recursive: true });
  cpSync(PACKAGE, published, { recursive: true });
  git("init", "-q");
  git("add", ".");
  git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "release");
  write(
    "packages.yml",
    `packages: [{ git: "file://${folder}/repository", subdirectory: docs/dbt, revision: HEAD }]\n`,
  );
  write(
    "dbt_project.yml",
    "name: shop\nversion: 1.0.0\nprofile: shop\nflags: { send_anonymous_usage_stats: false }\n",
  );
  mkdirSync(join(folder, "models"));
  write(
    "models/spend.sql",
    "select usage_date, sum(traces) as traces from {{ ref('usage_etl__workspace_daily') }} group by 1\n",
  );
  const { hostname, port, pathname } = new URL(url);
  const admin = await connectPlain(url);
  const outputs: string[] = [];
  for (const [target, schema] of Object.entries(SCHEMAS)) {
    const login = `${inject("runPrefix")}dbt_${target}_${environment.replace("-", "_")}_${pathname.slice(-6)}`;
    const role = target === "masked" ? "usage_reader_masked" : "usage_reader";
    // Tables that dbt makes have no key, so a publication of all tables would refuse their changes.
    await admin.query(`
      DROP PUBLICATION IF EXISTS cdc; CREATE ROLE ${login} LOGIN PASSWORD 'dbt' IN ROLE ${role};
      ALTER ROLE ${login} SET timezone = 'UTC'; ALTER ROLE ${login} SET jit = off;
      CREATE SCHEMA ${schema} AUTHORIZATION ${login}`);
    atEnd(() => admin.query(`DROP OWNED BY ${login} CASCADE; DROP ROLE ${login}`));
    outputs.push(
      `${target}: { type: postgres, host: ${hostname}, port: ${port}, dbname: ${pathname.slice(1)}, user: ${login}, password: dbt, schema: ${schema}, threads: 4 }`,
    );
  }
  write("profiles.yml", `shop:\n  target: plain\n  outputs:\n    ${outputs.join("\n    ")}\n`);

  const env = { ...process.env, DBT_PROFILES_DIR: folder, DO_NOT_TRACK: "1" };
  const python = spawn(join(venvOf(environment), "bin/python"), [PROGRAM], { cwd: folder, env });
  atEnd(() => python.kill());
  let said = "";
  python.stderr.on("data", (piece) => {
    said += piece;
  });
  const responses = createInterface(python.stdout)[Symbol.asyncIterator]();
  const dbt = async (...args: string[]): Promise<Ran> => {
    python.stdin.write(`${JSON.stringify(args)}\n`);
    const { value, done } = await responses.next();
    if (done === true) throw new Error(`dbt ended:\n${said}`);
    return JSON.parse(value) as Ran;
  };
  return {
    dbt,
    admin,
    read: (path: string) => JSON.parse(readFileSync(join(folder, path), "utf8")),
    metrics: (names: readonly string[]): string[][] => {
      const csv = join(folder, "metrics.csv");
      const query = [
        "query",
        "--metrics",
        names.join(","),
        "--group-by",
        "metric_time__month",
        "--order",
        "metric_time__month",
      ];
      execFileSync(join(venvOf(environment), "bin/mf"), [...query, "--csv", csv], {
        cwd: folder,
        env,
        stdio: "pipe",
      });
      return readFileSync(csv, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.trim().split(","));
    },
  };
}

export function troubles({ error, results }: Ran): string[] {
  const bad = results.filter(({ status }) => !["success", "pass", "no-op"].includes(status));
  return [
    ...(error === null ? [] : [error]),
    ...bad.map(({ name, status, says }) => `${name}: ${status} ${says}`),
  ];
}
