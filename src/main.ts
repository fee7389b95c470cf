import { enableCompileCache } from "node:module";

// Before anything else is loaded: without it every start strips and compiles all of the program anew.
enableCompileCache();
const { main } = await import("./cli/program.ts");
await main();
