import { type ExecFileSyncOptions, execFile, execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { aptInstall } from "../../src/features/servers/install.ts";
import { resolvePostgres } from "../../src/features/servers/postgres.ts";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { startStandin } from "../../src/features/standin/server.ts";

/**
 * Builds the Dockerfile on a Debian without a container engine, as root, and runs the image as user 1000 on a read-only file
 * system: `npm run image:check`. Its base stands in for `node:24-bookworm-slim`, and is made by debootstrap from the Node of
 * this clone and the npm of this machine. buildah keeps base and image: `buildah images`.
 */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BASE = "localhost/usage-etl-base:bookworm";
const IMAGE = "localhost/usage-etl:check";
/** What the dependencies and the program may add to the base. */
const LARGEST_MB = 60;
const READY_MS = 120_000;
/** Not overlay: the file system below may be one itself. */
const BUILDAH = ["--storage-driver", "vfs"];

const work = mkdtempSync(join(tmpdir(), "usage-etl-image-"));
const say = (line: string) => console.log(line);
try {
  await aptInstall(["buildah", "debootstrap"], process.env);
  if (buildah("images", "--quiet", "--filter", `reference=${BASE}`) === "") makeBase();
  buildImage();
  const container = buildah("from", "--pull-never", IMAGE);
  try {
    const root = buildah("mount", container);
    checkSize(root);
    await checkRuns(root);
  } finally {
    buildah("rm", container);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
say("The image builds and runs.");

function run(program: string, args: readonly string[], options: ExecFileSyncOptions = {}): void {
  execFileSync(program, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
}

function buildah(...args: string[]): string {
  return execFileSync("buildah", [...BUILDAH, ...args], { encoding: "utf8" }).trim();
}

function makeBase(): void {
  const root = join(work, "base");
  say(`Making ${BASE} with debootstrap.`);
  run("debootstrap", ["--variant=minbase", "--include=libstdc++6", "bookworm", root]);
  rmSync(join(root, "var/cache/apt"), { recursive: true });
  cpSync(process.execPath, join(root, "usr/local/bin/node"));
  const npm = join(root, "usr/local/lib/node_modules/npm");
  mkdirSync(dirname(npm), { recursive: true });
  const program = realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim());
  cpSync(dirname(dirname(program)), npm, { recursive: true });
  for (const name of ["npm", "npx"]) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, "usr/local/bin", name));
  }
  run("chroot", [root, "useradd", "--uid", "1000", "--user-group", "--create-home", "node"]);
  const container = buildah("from", "scratch");
  buildah("copy", "--quiet", container, root, "/");
  buildah("commit", "--quiet", "--rm", container, BASE);
}

/** With the certificates that npm trusts on this machine, which may be behind a proxy of its own. They stay outside. */
function buildImage(): void {
  const settings = join(work, "npmrc");
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  const inside = "/tmp/certificates.pem";
  writeFileSync(settings, certificates === undefined ? "" : `cafile=${inside}\n`);
  const mounts = [`${settings}:/root/.npmrc:ro`, ...(certificates ? [`${certificates}:${inside}:ro`] : [])];
  const flags = ["--isolation", "chroot", "--network", "host", "--build-arg", `NODE_IMAGE=${BASE}`];
  const volumes = mounts.flatMap((mount) => ["--volume", mount]);
  run("buildah", [...BUILDAH, "bud", ...flags, ...volumes, "--format", "docker", "--tag", IMAGE, ROOT]);
}

function checkSize(root: string): void {
  const [kilobytes = ""] = execFileSync("du", ["-sk", join(root, "app")], { encoding: "utf8" }).split("\t");
  const megabytes = Number(kilobytes) / 1024;
  say(`The image adds ${megabytes.toFixed(1)} MB to its base.`);
  if (megabytes > LARGEST_MB) throw new Error(`The image adds more than ${LARGEST_MB} MB to its base.`);
  if (existsSync(join(root, "usr/local/bin/npm"))) throw new Error("The image holds npm.");
}

async function checkRuns(root: string): Promise<void> {
  const postgres = await resolvePostgres({ say });
  const redis = await resolveRedis({ say });
  const standin = await startStandin();
  try {
    const port = 20_000 + (process.pid % 10_000);
    const settings = {
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      USAGE_BASE_URL: standin.url,
      USAGE_API_KEY: standin.apiKey,
      USAGE_WEB_TOKEN: "a-token-of-this-check",
      HTTP_PORT: String(port),
    };
    for (const args of [["--help"], ["migrate"], ["plan", "--from", "2026-03-01", "--to", "2026-03-08"]]) {
      await promisify(execFile)("unshare", isolated(root, args, settings));
      say(`usage-etl ${args.join(" ")}: exit 0`);
    }
    const service = spawn("unshare", isolated(root, ["serve"], settings), { stdio: ["ignore", 1, 2] });
    const ended = new Promise((resolve) => service.once("exit", resolve));
    try {
      await untilReady(`http://127.0.0.1:${port}/readyz`);
    } finally {
      service.kill("SIGTERM");
    }
    const code = await ended;
    say(`usage-etl serve: ready, then ended with ${code} on SIGTERM`);
    if (code !== 0) throw new Error("serve did not end as it should.");
  } finally {
    await standin.close();
    await redis.close();
    await postgres.close();
  }
}

function isolated(root: string, args: readonly string[], settings: Record<string, string>): string[] {
  const { config } = JSON.parse(buildah("inspect", "--format", "{{.Config}}", IMAGE));
  const { Env = [], Entrypoint = [], User, WorkingDir } = config;
  const variables = [...Env, ...Object.entries(settings).map((pair) => pair.join("="))];
  const script = `
    set -e; root=$1; shift
    mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
    mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"
    exec chroot --userspec=${User} "$root" env -i --chdir=${WorkingDir} "$@"`;
  return ["--mount", "sh", "-c", script, "sh", root, ...variables, ...Entrypoint, ...args];
}

async function untilReady(url: string): Promise<void> {
  for (const deadline = performance.now() + READY_MS; ; await pause(200)) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    if (performance.now() > deadline) throw new Error(`${url} is not ready: ${await response?.text()}`);
  }
}
