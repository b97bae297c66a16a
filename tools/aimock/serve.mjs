// Serves the APIs of OpenAI, Anthropic and Gemini on one local port, with answers from
// a file of fixtures. Prints its URL; exits when its standard input closes, so that it
// never outlives a test.
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
