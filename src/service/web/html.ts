import { html } from "hono/html";

export { html };

/** A piece of a page. Values put into `html` are escaped; pieces and arrays of pieces are put in as they are. */
export type Html = ReturnType<typeof html>;
