// Serves the formats of OpenAI, Anthropic and Gemini on one port of this machine,
// answering from a file of fixtures. Prints its address; ends when its standard
// input does, so that it never outlives a test.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [tools, fixtures] = process.argv.slice(2);
const require = createRequire(`${tools}/`);
const { LLMock } = await import(pathToFileURL(require.resolve("@copilotkit/aimock")));

const mock = new LLMock({ port: 0, host: "127.0.0.1", chunkSize: 4 });
mock.loadFixtureFile(fixtures);
await mock.start();
console.log(mock.url);
process.stdin.on("end", () => process.exit(0)).resume();
