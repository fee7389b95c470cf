import { measureAll } from "./all.ts";

/** `npm run bench`: loads. `-- --all` and `-- --nightly`: see all.ts. */
const chosen = ["--all", "--nightly"].find((option) => process.argv.includes(option));
if (chosen === undefined) await import("./load.ts");
else await measureAll({ nightly: chosen === "--nightly" });
