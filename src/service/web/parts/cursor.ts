import { z } from "zod";

/** The place in a list where its next page begins, as an address carries it. Reading checks it against `schema`. */
export function cursorField<S extends z.ZodType>(schema: S) {
  return z
    .string()
    .max(8000)
    .transform((text, context): z.output<S> => {
      const { data, error } = schema.safeParse(readJson(text));
      if (error === undefined) return data;
      context.addIssue({ code: "custom", message: "This is no place in the list. Begin at its first page" });
      return z.NEVER;
    })
    .optional();
}

export function cursorText(cursor: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(cursor)).toString("base64url");
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
}
