#!/usr/bin/env node
// JavaScript that an old Node understands, so that it can say what it lacks. A clone runs the sources, a package what was compiled from
// them, because Node strips no types below node_modules.
import { existsSync } from "node:fs";
import module from "node:module";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isClone = existsSync(new URL("app/main.ts", import.meta.url));
const [leastMajor, leastMinor, next] = isClone
  ? [24, 12, "Run `npx usage-etl COMMAND`: it uses the Node that the project brings."]
  : [22, 19, "Install a newer Node."];
if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
  process.stderr.write(
    `Node ${process.versions.node} cannot run usage-etl, which needs Node ${leastMajor}.${leastMinor} or later.\n  ${next} [node_too_old]\n`,
  );
  process.exitCode = 2;
} else {
  // Must come before the program is loaded. Without the cache every start compiles all of it.
  module.enableCompileCache();
  import(isClone ? "./app/main.ts" : "../dist/src/app/main.js");
}
