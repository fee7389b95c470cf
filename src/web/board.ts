import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import helmet from "@fastify/helmet";
import type { Queue } from "bullmq";
import type { FastifyInstance } from "fastify";
import type { Clock } from "../core/base/clock.ts";
import { NONE, OWN, policyOf } from "./policy.ts";
import { isSameToken, WrongTries } from "./wrong-tries.ts";

const PATH = "/queues";

export function addBoard(
  app: FastifyInstance,
  { token, queues, clock }: { token: string; queues: readonly Queue[]; clock: Clock },
): void {
  const wrong = new WrongTries(clock);
  const adapter = new FastifyAdapter();
  adapter.setBasePath(PATH);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
  });
  app.register(async (guarded) => {
    // The pages would load a font from Google, which would see who reads them. Here they use another font.
    const styleSrc = [...OWN, "'unsafe-inline'"];
    const imgSrc = [...OWN, "data:"];
    await guarded.register(
      helmet,
      policyOf({ fontSrc: OWN, baseUri: OWN, styleSrc, imgSrc, formAction: NONE }),
    );
    guarded.addHook("onRequest", async (request, reply) => {
      const { authorization } = request.headers;
      if (isRight(authorization, token)) return;
      // Browsers send one request without a password before they ask for it.
      if (authorization !== undefined && wrong.note(request.ip)) {
        const next = "Try again in a minute.";
        return reply.code(429).header("retry-after", "60").send({ error: "too_many_tries", next });
      }
      await reply.code(401).header("www-authenticate", 'Basic realm="usage-etl"').send({
        error: "unauthorized",
        next: "Give USAGE_WEB_TOKEN as the password; any user name will do.",
      });
    });
    guarded.register(adapter.registerPlugin(), { prefix: PATH });
  });
}

function isRight(authorization: string | undefined, token: string): boolean {
  const [scheme, encoded = ""] = (authorization ?? "").split(" ");
  if (scheme?.toLowerCase() !== "basic") return false;
  const given = Buffer.from(encoded, "base64").toString("utf8");
  return isSameToken(given.slice(given.indexOf(":") + 1), token);
}
