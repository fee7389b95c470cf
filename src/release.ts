import { readFileSync } from "node:fs";
import { ROOT } from "./root.ts";

/** The version of this release. */
export function releaseOf(): string {
  const { version } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  return version;
}
