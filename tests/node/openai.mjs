// OpenAI's own client on node, as it is, at a gateway: `node openai.mjs ADDRESS TOKEN SCENES` prints what it reads.
// SCENES, as JSON: what is said, to which models, and what goes wrong. Knows nothing of what the answers should be.

import OpenAI from "openai";

const [address, token, given] = process.argv.slice(2);
const scenes = JSON.parse(given);
const client = new OpenAI({ apiKey: token, baseURL: `${address}/v1` });
const tools = [{ type: "function", function: { name: "get_weather", strict: true, parameters: scenes.weather } }];
const place = { type: "json_schema", json_schema: { name: "place", strict: true, schema: scenes.place } };

async function completed(body, streamed) {
  if (!streamed) return client.chat.completions.create(body);
  return client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
}

async function conversed(models, streamed) {
  const { system, hello, again, sky, town, rain } = scenes;
  const talk = [
    { role: "system", content: system },
    { role: "user", content: hello },
    { role: "assistant", content: "Hello." },
    { role: "user", content: again },
  ];
  const chat = await completed({ model: models.chat, messages: talk }, streamed);
  const asked = [{ role: "user", content: sky }];
  const first = (await completed({ model: models.tools, messages: asked, tools }, streamed)).choices[0];
  const call = first.message.tool_calls[0];
  asked.push(first.message, { role: "tool", tool_call_id: call.id, content: rain });
  const second = await completed({ model: models.tools, messages: asked, tools }, streamed);
  const shaped = { model: models.json, messages: [{ role: "user", content: town }], response_format: place };
  return {
    said: chat.choices[0].message.content,
    end: chat.choices[0].finish_reason,
    counts: [chat.usage.prompt_tokens, chat.usage.completion_tokens],
    called: [first.finish_reason, call.function.name, JSON.parse(call.function.arguments)],
    told: second.choices[0].message.content,
    place: JSON.parse((await completed(shaped, streamed)).choices[0].message.content),
  };
}

async function responded(models, streamed) {
  const body = { model: models.chat, instructions: scenes.system, input: scenes.hello };
  if (!streamed) return (await client.responses.create(body)).output_text;
  return (await client.responses.stream(body).finalResponse()).output_text;
}

async function failed({ key, ...body }) {
  const other = new OpenAI({ apiKey: key ?? token, baseURL: `${address}/v1` });
  try {
    await other.chat.completions.create({ messages: [{ role: "user", content: scenes.hello }], ...body });
    return null;
  } catch (error) {
    return [error.constructor.name, error.status, error.code];
  }
}

async function aborted(model, text, atFirst) {
  const controller = new AbortController();
  const body = { model, messages: [{ role: "user", content: text }], stream: true };
  const chunks = await client.chat.completions.create(body, { signal: controller.signal });
  for await (const chunk of chunks) {
    if (!chunk.choices[0]?.delta.content || controller.signal.aborted) continue;
    await atFirst();
    controller.abort();
  }
  return controller.signal.aborted;
}

// How the provider sees a stream that is broken off after its first piece: what is in flight before, and for how long.
async function left({ model, text, summary }) {
  const inFlight = async () => (await (await fetch(summary)).json()).in_flight;
  let before = null;
  const done = await aborted(model, text, async () => (before = await inFlight()));
  const since = performance.now();
  while ((await inFlight()) && performance.now() - since < 10_000) await new Promise((on) => setTimeout(on, 10));
  return { aborted: done, before, freed_ms: performance.now() - since };
}

const found = { models: {}, errors: {} };
for (const [name, models] of Object.entries(scenes.behind)) {
  found.models[name] = {};
  for (const streamed of [false, true]) {
    const chat = await conversed(models, streamed);
    found.models[name][streamed ? "streamed" : "whole"] = { ...chat, responded: await responded(models, streamed) };
  }
}
for (const [name, body] of Object.entries(scenes.errors)) found.errors[name] = await failed(body);
found.listed = (await client.models.list()).data.map((model) => model.id);
if (scenes.slow) found.slow = await left(scenes.slow);
console.log(JSON.stringify(found));
