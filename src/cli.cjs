#!/usr/bin/env node
// `src/cli.ts` is a link to this file. An old Node cannot load a .ts file, but it follows the link and runs this one, which
// it understands. So write nothing here that Node 12 does not know.
const [major, minor] = process.versions.node.split(".");
if (Number(major) < 24 || (Number(major) === 24 && Number(minor) < 12)) {
  const own = require("node:path").join(__dirname, "../node_modules/.bin/node");
  process.stderr.write(
    `Node ${process.versions.node} cannot run usage-etl, which needs Node 24.12 or later.\n` +
      `  The project brings one: run \`npm run -s usage-etl -- COMMAND\`, or ${own} in place of node. [node_too_old]\n`,
  );
  process.exitCode = 2;
} else {
  import("./main.ts");
}
