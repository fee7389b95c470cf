import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("clock.c", import.meta.url));

export function buildClock(folder: string): string | undefined {
  const library = join(folder, "clock.so");
  if (compile(library)) return library;
  installCompiler();
  return compile(library) ? library : undefined;
}

function compile(library: string): boolean {
  if (process.platform !== "linux") return false;
  const { status } = spawnSync("cc", ["-shared", "-fPIC", "-O2", "-o", library, SOURCE], {
    stdio: ["ignore", 2, 2],
  });
  return status === 0;
}

function installCompiler(): void {
  if (process.getuid?.() !== 0) return;
  process.stderr.write("No C compiler: installing gcc with apt-get.\n");
  const commands = "apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev";
  spawnSync("/bin/sh", ["-c", commands], {
    stdio: ["ignore", 2, 2],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}
