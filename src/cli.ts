#!/bin/sh
":"; //; exec node --max-semi-space-size=4 "$0" "$@"
// A shell runs the second line and goes on as Node. A smaller young generation saves a third of the memory; V8 takes that
// setting at its start only, and not every `env` can pass it on.
//
// `src/cli.ts` is a link to this file. An old Node cannot load a .ts file, but it follows the link and runs this one, which
// it understands. So write nothing here that Node 12 does not know. A package from npm has no .ts files: Node does not run
// them below node_modules.
// biome-ignore lint/style/useNodejsImportProtocol: Node 12 does not know it.
const { existsSync } = require("fs");
// biome-ignore lint/style/useNodejsImportProtocol: the same.
const { join } = require("path");
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isClone = existsSync(join(__dirname, "main.ts"));
const [least, leastMinor] = isClone ? [24, 12] : [22, 19];
if (major < least || (major === least && minor < leastMinor)) {
  const own = join(__dirname, "../node_modules/.bin/node");
  const next = isClone
    ? `The project brings one: run \`npx usage-etl COMMAND\`, or ${own} in place of node.`
    : // By its file: whoever registered the name could run anything.
      `Install a newer one, or let npm bring it: \`npm install --prefix DIR ./usage-etl-${require("../package.json").version}.tgz node@24\`, with the path of the package. Then put DIR/node_modules/.bin first in PATH.`;
  process.stderr.write(
    `Node ${process.versions.node} cannot run usage-etl, which needs Node ${least}.${leastMinor} or later.\n  ${next} [node_too_old]\n`,
  );
  process.exitCode = 2;
} else {
  if (major < 24) {
    // undici looks whether there is SQLite, which we do not use. Node 22 warns that it is experimental.
    const warn = process.emitWarning;
    process.emitWarning = (warning, ...rest) =>
      /^SQLite/.test(String(warning)) ? undefined : Reflect.apply(warn, process, [warning, ...rest]);
  }
  // Before anything else is loaded: without it every start strips and compiles all of the program anew. In `main.ts` it would be
  // too late for that file itself, and what strips types takes 20 MB.
  // biome-ignore lint/style/useNodejsImportProtocol: the same.
  require("module").enableCompileCache();
  import(isClone ? "./main.ts" : "../dist/src/main.js");
}
