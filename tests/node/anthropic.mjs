// Anthropic's own client on node, as it is, at a gateway: `node anthropic.mjs ADDRESS TOKEN SCENES` prints what it
// reads. SCENES, as JSON: what is said, to which models, and what goes wrong. Knows nothing of what the answers should be.

import Anthropic from "@anthropic-ai/sdk";

const [address, token, given] = process.argv.slice(2);
const scenes = JSON.parse(given);
const client = new Anthropic({ apiKey: token, baseURL: address });
const tools = [{ name: "get_weather", description: "The weather.", input_schema: scenes.weather }];

async function answered(body, streamed) {
  const whole = { max_tokens: 200, ...body };
  return streamed ? client.messages.stream(whole).finalMessage() : client.messages.create(whole);
}

const text = (message) => message.content.map((block) => (block.type === "text" ? block.text : "")).join("");

async function conversed(models, streamed) {
  const { system, hello, again, sky, town, rain } = scenes;
  const talk = [
    { role: "user", content: hello },
    { role: "assistant", content: "Hello." },
    { role: "user", content: again },
  ];
  const chat = await answered({ model: models.chat, system, messages: talk }, streamed);
  const asked = [{ role: "user", content: sky }];
  const first = await answered({ model: models.tools, messages: asked, tools }, streamed);
  const use = first.content.find((block) => block.type === "tool_use");
  const result = { type: "tool_result", tool_use_id: use.id, content: rain };
  asked.push({ role: "assistant", content: first.content }, { role: "user", content: [result] });
  const second = await answered({ model: models.tools, messages: asked, tools }, streamed);
  const form = { format: { type: "json_schema", schema: scenes.place } };
  const shaped = { model: models.json, messages: [{ role: "user", content: town }], output_config: form };
  return {
    said: text(chat),
    end: chat.stop_reason,
    counts: [chat.usage.input_tokens, chat.usage.output_tokens],
    called: [first.stop_reason, use.name, use.input],
    told: text(second),
    place: JSON.parse(text(await answered(shaped, streamed))),
  };
}

async function failed({ key, ...body }) {
  const other = new Anthropic({ apiKey: key ?? token, baseURL: address });
  try {
    await other.messages.create({ max_tokens: 200, messages: [{ role: "user", content: scenes.hello }], ...body });
    return null;
  } catch (error) {
    return [error.constructor.name, error.status, error.error?.error?.type];
  }
}

async function aborted(model, text, atFirst) {
  const body = { model, max_tokens: 200, messages: [{ role: "user", content: text }] };
  const events = client.messages.stream(body);
  events.once("text", () => atFirst().then(() => events.abort()));
  try {
    await events.done();
  } catch (error) {
    return error.constructor.name === "APIUserAbortError";
  }
  return false;
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
  for (const streamed of [false, true])
    found.models[name][streamed ? "streamed" : "whole"] = await conversed(models, streamed);
}
for (const [name, body] of Object.entries(scenes.errors)) found.errors[name] = await failed(body);
found.listed = (await client.models.list()).data.map((model) => model.id);
if (scenes.slow) found.slow = await left(scenes.slow);
console.log(JSON.stringify(found));
