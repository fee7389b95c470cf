import { z } from "zod";

export type AgentCard = Readonly<z.output<typeof cardSchema>>;

/** Which names a server's methods have: those of A2A 0.3 (docs/platform.md, Agent server) or of 1.0. */
export type Protocol = "0.3" | "1.0";

const orNull = z
  .string()
  .nullish()
  .transform((text) => text ?? null);
const modes = z
  .array(z.string())
  .nullish()
  .transform((all) => all ?? []);
/** An entry that is not of this form is left out: it names no way that this client speaks. */
const supported = z.union([
  z.object({ protocolBinding: z.string(), protocolVersion: z.string() }),
  z.unknown().transform(() => null),
]);
export const cardSchema = z
  .object({
    name: z.string(),
    description: orNull,
    url: orNull,
    skills: z
      .array(z.object({ name: z.string() }))
      .nullish()
      .transform((all) => (all ?? []).map(({ name }) => name)),
    defaultInputModes: modes,
    defaultOutputModes: modes,
    supportedInterfaces: z.union([z.array(supported), z.unknown().transform(() => [])]).optional(),
  })
  .transform(({ defaultInputModes: inputModes, defaultOutputModes: outputModes, ...rest }) => {
    const { supportedInterfaces, ...card } = rest;
    return { ...card, inputModes, outputModes, protocol: protocolOf(supportedInterfaces ?? []) };
  });

function protocolOf(interfaces: readonly z.output<typeof supported>[]): Protocol {
  const speaks1 = interfaces.some(
    (one) => one?.protocolBinding.toUpperCase() === "JSONRPC" && /^1(\.|$)/.test(one.protocolVersion.trim()),
  );
  return speaks1 ? "1.0" : "0.3";
}
