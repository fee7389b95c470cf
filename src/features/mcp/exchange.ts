import {
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

/**
 * Responds to a message of any revision of the protocol with one JSON. There is no session and nothing to listen for: nothing
 * here changes while a client is connected.
 */
export function exchange(serverOf: () => McpServer) {
  const newest = createMcpHandler(serverOf, { legacy: "reject", maxSubscriptions: 0 });
  return async (request: Request, parsedBody: unknown): Promise<Response> => {
    if (!(await isLegacyRequest(request, parsedBody))) return newest.fetch(request, { parsedBody });
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    const server = serverOf();
    await server.connect(transport);
    try {
      return await transport.handleRequest(request, { parsedBody });
    } finally {
      await server.close();
    }
  };
}
