import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary.ts";
import { goOf, notFound, notInstalled, venvOf } from "./counterparts.ts";

/** The checkers of others pass what we ship for deployment, and find a defect that is put into each. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SHIPPED = ["docs/deploy", ".github/workflows", "Dockerfile"];

interface Checker {
  readonly name: string;
  readonly missing: string | undefined;
  readonly command: readonly [program: string, ...args: string[]];
  readonly file: string;
  /** A text of the file, and the defect in its place. */
  readonly defect: readonly [text: string, wrong: string];
}

const monitoring = "docs/deploy/monitoring";
const systemd = "docs/deploy/systemd";
const promtool = notFound("promtool");
const unit = ["systemd-analyze", "verify", "--recursive-errors=yes"] as const;

const CHECKERS: readonly Checker[] = [
  {
    name: "actionlint",
    missing: notInstalled("actionlint"),
    command: [goOf("actionlint")],
    file: ".github/workflows/release.yml",
    defect: ["runs-on:", "run-on:"],
  },
  {
    name: "hadolint",
    missing: notInstalled("operations"),
    command: [join(venvOf("operations"), "bin/hadolint")],
    file: "Dockerfile",
    defect: ["WORKDIR /app", "WORKDIR app"],
  },
  ...["autoscale", "process", "scheduler", "service", "worker"].map((name) => ({
    name: `kustomize of ${name}`,
    missing: notInstalled("kustomize"),
    command: [goOf("kustomize"), "build"] as const,
    file: `docs/deploy/kubernetes/${name}`,
    defect: ["resources:", "resource:"] as const,
  })),
  {
    name: "promtool of rules",
    missing: promtool,
    command: ["promtool", "check", "rules"],
    file: `${monitoring}/rules.yml`,
    defect: ["expr: usage_etl_database_up == 0", "expr: usage_etl_database_up = 0"],
  },
  {
    name: "promtool of when a rule fires",
    missing: promtool,
    command: ["promtool", "test", "rules"],
    file: `${monitoring}/rules.test.yml`,
    defect: ["exp_labels: { severity: critical", "exp_labels: { severity: warning"],
  },
  {
    name: "promtool of the configuration",
    missing: promtool,
    command: ["promtool", "check", "config"],
    file: `${monitoring}/prometheus.yml`,
    defect: ["dns_sd_configs", "dns_configs"],
  },
  ...["usage-etl-scheduler.service", "usage-etl-worker@.service"].map((name) => ({
    name: `systemd-analyze of ${name}`,
    missing: notFound("systemd-analyze"),
    command: unit,
    file: `${systemd}/${name}`,
    defect: ["Restart=always", "Restart=allways"] as const,
  })),
];

test.for(CHECKERS)("$name", ({ missing, command: [program, ...args], file, defect }, { skip }) => {
  if (missing !== undefined) skip(missing);
  const folder = temporaryFolder();
  for (const one of SHIPPED) cpSync(join(ROOT, one), join(folder, one), { recursive: true });
  const path = join(folder, file);
  const edited = file.startsWith("docs/deploy/kubernetes") ? join(path, "kustomization.yaml") : path;
  // The program of the units is where the document installs it, which is not this machine.
  const shipped = readFileSync(edited, "utf8").replaceAll(
    "/opt/usage-etl/node_modules/.bin/node",
    process.execPath,
  );
  const check = (content: string) => {
    writeFileSync(edited, content);
    const { status, stdout, stderr } = spawnSync(program, [...args, path], {
      encoding: "utf8",
      timeout: 60_000,
    });
    return { status, said: stdout + stderr };
  };
  const passed = check(shipped);
  expect(passed.status, passed.said).toBe(0);
  const wrong = shipped.replace(...defect);
  expect(wrong).not.toBe(shipped);
  expect(check(wrong).status).toBeGreaterThan(0);
});
