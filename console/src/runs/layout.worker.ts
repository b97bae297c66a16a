// Finds places beside the page, which stays quick meanwhile.
import { layout, type Step } from "./layout";

self.onmessage = (event: MessageEvent<{ id: number; steps: Step[] }>) => {
  self.postMessage({ id: event.data.id, places: layout(event.data.steps) });
};
