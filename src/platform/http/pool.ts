import { createRequire } from "node:module";
import type * as Undici from "undici";

const require = createRequire(import.meta.url);

/**
 * The pool of undici. Its whole also loads what browsers have, mocks and caches, which takes 60 ms and 10 MB of every process
 * that may ask the platform. What gives its dispatchers their methods is what its index does first.
 */
export const Pool = require("undici/lib/dispatcher/pool.js") as typeof Undici.Pool;
export type Pool = Undici.Pool;

const { request } = require("undici/lib/api/index.js") as Pick<typeof Undici.Dispatcher.prototype, "request">;
Object.assign((require("undici/lib/dispatcher/dispatcher.js") as typeof Undici.Dispatcher).prototype, {
  request,
});
