"""One MCP client of Python against a server over HTTP: `mcp_clients.py CLIENT URL TOKEN SQL`. Prints its tools and what it made of a query, as JSON."""

import asyncio
import json
import sys

client, url, token, sql = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}


async def mcp():
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=headers) as http:
        async with Client(streamable_http_client(url, http_client=http)) as connected:
            tools = (await connected.list_tools()).tools
            prompts = (await connected.list_prompts()).prompts
            assert [one.name for one in prompts] == ["monthly_report"], prompts
            ran = await connected.call_tool("query", {"sql": sql})
            return [tool.name for tool in tools], ran.structured_content


async def fastmcp():
    from fastmcp import Client

    async with Client(url, auth=token) as connected:
        tools = await connected.list_tools()
        ran = await connected.call_tool("query", {"sql": sql})
        return [tool.name for tool in tools], ran.structured_content


async def langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient

    connected = MultiServerMCPClient({"usage": {"transport": "streamable_http", "url": url, "headers": headers}})
    tools = {tool.name: tool for tool in await connected.get_tools()}
    ran = await tools["query"].ainvoke({"sql": sql})
    return list(tools), json.loads(ran[0]["text"])


async def openai_agents():
    from agents import Agent
    from agents.mcp import MCPServerStreamableHttp, MCPUtil
    from agents.run_context import RunContextWrapper
    from agents.tool_context import ToolContext

    found = []
    async with MCPServerStreamableHttp({"url": url, "headers": headers}, use_structured_content=True) as server:
        for strict in (False, True):
            context = RunContextWrapper(None)
            tools = await MCPUtil.get_function_tools(server, strict, context, Agent(name="a", mcp_servers=[server]))
            # A schema that cannot be strict is left as it is.
            found = [tool.name for tool in tools]
            assert not strict or all(tool.strict_json_schema for tool in tools), tools
            query = next(tool for tool in tools if tool.name == "query")
            # A strict model sends each argument, and null for what it leaves out.
            arguments = {name: None for name in query.params_json_schema["properties"]} if strict else {}
            arguments = json.dumps({**arguments, "sql": sql})
            ran = await query.on_invoke_tool(
                ToolContext(None, tool_name="query", tool_call_id="1", tool_arguments=arguments), arguments
            )
        return found, json.loads(ran["text"] if isinstance(ran, dict) else ran)


async def pydantic_ai():
    from fastmcp.client.transports import StreamableHttpTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.test import TestModel

    toolset = MCPToolset(StreamableHttpTransport(url, headers=headers))
    async with toolset:
        tools = await toolset.list_tools()
        ran = await toolset.direct_call_tool("query", {"sql": sql})
        # A model that calls a tool without a description of its own.
        await Agent(TestModel(call_tools=["list_views"]), toolsets=[toolset]).run("Which views are there?")
        return [tool.name for tool in tools], ran


async def mcp_use():
    from mcp_use import MCPClient

    connected = MCPClient.from_dict({"mcpServers": {"usage": {"url": url, "headers": headers}}})
    session = await connected.create_session("usage")
    tools = await session.list_tools()
    ran = await session.call_tool("query", {"sql": sql})
    await connected.close_all_sessions()
    return [tool.name for tool in tools], getattr(ran, "structured_content", None) or ran.structuredContent


clients = {
    "mcp": mcp,
    "fastmcp": fastmcp,
    "langchain-mcp-adapters": langchain,
    "openai-agents": openai_agents,
    "pydantic-ai-slim": pydantic_ai,
    "mcp-use": mcp_use,
}
names, rows = asyncio.run(clients[client]())
print(json.dumps({"tools": sorted(names), "rows": rows}, ensure_ascii=False))
