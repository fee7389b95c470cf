import type { FastifyReply } from "fastify";
import type { Html } from "./html.ts";
import { bareLayout } from "./parts/layout.ts";

/** Sends a page without navigation: for those who may not look yet. */
export async function sendBare(
  reply: FastifyReply,
  status: number,
  page: { readonly title: string; readonly body: Html },
): Promise<FastifyReply> {
  return sendHtml(reply, status, bareLayout(page));
}

export async function sendHtml(reply: FastifyReply, status: number, page: Html): Promise<FastifyReply> {
  return reply
    .code(status)
    .type("text/html; charset=utf-8")
    .send(String(await page));
}
