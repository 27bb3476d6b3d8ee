/** The models of the sandbox, as both protocols list them. It answers to every other name too. */
export function modelsResponse(url: string): Response {
  if (!new URL(url).pathname.endsWith("/models")) return new Response(null, { status: 404 });
  const id = "sandbox";
  return Response.json({
    object: "list",
    data: [
      {
        id,
        type: "model",
        display_name: "Sandbox",
        created_at: "1970-01-01T00:00:00Z",
        object: "model",
        created: 0,
        owned_by: "parley",
      },
    ],
    has_more: false,
    first_id: id,
    last_id: id,
  });
}
