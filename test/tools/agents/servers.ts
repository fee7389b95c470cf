import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../../support/listen.ts";
import { temporaryFolder } from "../../support/temporary.ts";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL("./", import.meta.url));
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/agent-servers/", import.meta.url));

export const VERSIONS = ["0.16.7", "0.4.21"] as const;
export type Version = (typeof VERSIONS)[number];

/** The folder of its programs. Installed once. Throws if there is no Python, or no registry of its packages. */
async function install(version: Version): Promise<string> {
  const folder = join(CACHE, version);
  if (!existsSync(folder)) {
    const begun = `${folder}.begun`;
    rmSync(begun, { recursive: true, force: true });
    mkdirSync(CACHE, { recursive: true });
    await run("python3", ["-m", "venv", begun]);
    const pins = join(HERE, `requirements-${version}.txt`);
    await run(join(begun, "bin/python"), ["-m", "pip", "install", "--quiet", "-r", pins]);
    renameSync(begun, folder);
  }
  return join(folder, "bin");
}

export async function startServer(version: Version, http: object = {}) {
  const bin = await install(version);
  const folder = temporaryFolder();
  cpSync(join(HERE, "agent.py"), join(folder, "agent.py"));
  const config = { dependencies: ["."], graphs: { agent: "./agent.py:graph" }, http };
  writeFileSync(join(folder, "langgraph.json"), JSON.stringify(config));
  const [port] = await freePorts(1);
  const args = ["-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "20"];
  const child = spawn(join(bin, "python"), [...args, "--port", `${port}`], {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, LANGSMITH_TRACING: "false", LANGGRAPH_CLI_NO_ANALYTICS: "1" },
  });
  const ended = once(child, "exit");
  const close = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 600; i++) {
    const response = await fetch(`${url}/ok`, { signal: AbortSignal.timeout(1000) }).catch(() => undefined);
    if (response?.ok) return { url, bin, close };
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await close();
  throw new Error(`The agent server ${version} did not start`);
}
