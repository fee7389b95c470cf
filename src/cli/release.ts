import { readFileSync } from "node:fs";

/** The version of this release. */
export function releaseOf(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return version;
}
